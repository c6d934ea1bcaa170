//! The measure of a step; [`reward`](super) has the formulas.

use super::config::{RewardConfig, RewardKind};
use crate::expression::Program;
use bytemuck::{Pod, Zeroable};
use stages_core::ConfigProblem;

/// The moving averages of a step's excess return and of its square, for the differential Sharpe ratio. Saved
/// states hold these bytes where a reward depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Moments {
    pub mean: f64,
    pub square: f64,
}

/// The change of an account in a step, as far as a reward depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Net asset value before and after the step.
    pub nav: [f64; 2],
    /// The peak of the net asset value in the episode before and after the step.
    pub peak: [f64; 2],
    /// The interest of 1 of cash over the step.
    pub risk_free: f64,
    /// The value traded.
    pub traded: f64,
    /// The costs of trades.
    pub costs: f64,
    /// The value of what is held that moves like the market.
    pub exposure: f64,
}

/// The reward of an environment's steps.
pub(crate) struct Reward {
    config: RewardConfig,
    program: Option<Program>,
    capital: f64,
}

impl Reward {
    /// The reward of accounts that begin with `capital`; an expression is over quantities of these names.
    pub(crate) fn new(config: &RewardConfig, capital: f64, names: &[&str]) -> Result<Self, ConfigProblem> {
        Ok(Self {
            config: config.clone(),
            program: config.program(names)?,
            capital,
        })
    }

    /// True if rewards depend on moments of the episode so far.
    pub(crate) fn keeps_moments(&self) -> bool {
        self.config.keeps_moments()
    }

    /// The risk aversion, of a utility of the excess return.
    pub(crate) fn risk_aversion(&self) -> Option<f64> {
        let is_averse = matches!(
            self.config.kind,
            RewardKind::MeanVariance | RewardKind::ExponentialUtility
        );
        (self.program.is_none() && is_averse).then_some(self.config.risk_aversion)
    }

    /// The moments at the start of an episode.
    pub(crate) fn moments(&self) -> Moments {
        Moments {
            mean: 0.0,
            square: self.config.volatility * self.config.volatility,
        }
    }

    /// The reward of a step; `quantities` gives the values of an expression's names for the factor that makes
    /// money a fraction of the net asset value before the step.
    pub(crate) fn of<Q: AsRef<[f64]>>(
        &self,
        change: &Change,
        moments: &mut Moments,
        quantities: impl FnOnce(f64) -> Q,
    ) -> f64 {
        let config = &self.config;
        let least = 1e-3 * self.capital;
        let [before, after] = change.nav;
        let scale = 1.0 / before.max(least);
        let excess = (after - before) * scale - change.risk_free;
        let measure = match (&self.program, config.kind) {
            (Some(program), _) => program.evaluate(quantities(scale).as_ref()),
            (None, RewardKind::MeanVariance) => excess - 0.5 * config.risk_aversion * excess * excess,
            (None, RewardKind::ExponentialUtility) => {
                -libm::expm1(-config.risk_aversion * excess.max(-1.0)) / config.risk_aversion
            }
            (None, RewardKind::DifferentialSharpe) => {
                let Moments { mean, square } = *moments;
                let least = 1e-4 * config.volatility * config.volatility;
                let variance = (square - mean * mean).max(least);
                let (by_mean, by_square) = (excess - mean, excess * excess - square);
                moments.mean += config.eta * by_mean;
                moments.square += config.eta * by_square;
                (square * by_mean - 0.5 * mean * by_square) / (variance * variance.sqrt())
            }
            (None, RewardKind::Simple) => (after - before) / self.capital,
            (None, RewardKind::Log) => libm::log(after.max(least) * scale),
        };
        let deeper = (drawdown(after, change.peak[1]) - drawdown(before, change.peak[0])).max(0.0);
        let penalty = config.turnover * change.traded * scale
            + config.drawdown * deeper
            + config.delta * (change.exposure * scale).abs()
            + config.costs * change.costs * scale
            + config.cvar.weight * (-excess - config.cvar.threshold).max(0.0)
                / (1.0 - config.cvar.confidence);
        config.scale * (measure - penalty)
    }
}

/// The distance of a net asset value from its peak, as a fraction of the peak.
pub(crate) fn drawdown(nav: f64, peak: f64) -> f64 {
    1.0 - nav / peak
}
