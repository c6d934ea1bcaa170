//! The reward of a step; [`reward`](crate::options::reward) has the formulas.

use super::market::Market;
use super::state::{Account, Moments};
use crate::options::expression::Program;
use crate::options::reward::{QUANTITIES, RewardConfig, RewardKind};
use stages_core::ConfigProblem;

/// The account before a step, as far as a reward depends on it.
#[derive(Clone, Copy)]
pub(super) struct Before {
    nav: f64,
    peak: f64,
    traded: f64,
    costs: f64,
    interest: f64,
    liquidations: u32,
}

impl Before {
    pub(super) fn new(account: &Account) -> Self {
        Self {
            nav: account.nav,
            peak: account.peak,
            traded: account.traded,
            costs: account.spread_cost + account.commission,
            interest: account.interest,
            liquidations: account.liquidations,
        }
    }
}

/// The reward of a market's steps.
pub(super) struct Reward {
    config: RewardConfig,
    program: Option<Program>,
}

impl Reward {
    pub(super) fn new(config: &RewardConfig) -> Result<Self, ConfigProblem> {
        Ok(Self {
            config: config.clone(),
            program: config.program()?,
        })
    }

    /// The moments at the start of an episode.
    pub(super) fn moments(&self) -> Moments {
        Moments {
            mean: 0.0,
            square: self.config.volatility * self.config.volatility,
        }
    }

    /// The reward of the step that led to `account`, whose peak is up to date.
    pub(super) fn of(&self, market: &Market, before: Before, account: &Account, moments: &mut Moments) -> f64 {
        let config = &self.config;
        let capital = market.config.capital;
        let least = 1e-3 * capital;
        let now = market.now(account);
        let scale = 1.0 / before.nav.max(least);
        let risk_free = market.tables.accrual[account.t as usize - 1];
        let excess = (account.nav - before.nav) * scale - risk_free;
        let log_return = || libm::log(account.nav.max(least) * scale);
        let measure = match (&self.program, config.kind) {
            (Some(program), _) => program.evaluate(&self.quantities(market, before, account, scale)),
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
            (None, RewardKind::Simple) => (account.nav - before.nav) / capital,
            (None, RewardKind::Log) => log_return(),
        };
        let deeper = (drawdown(account.nav, account.peak) - drawdown(before.nav, before.peak)).max(0.0);
        let costs = account.spread_cost + account.commission - before.costs;
        let penalty = config.turnover * (account.traded - before.traded) * scale
            + config.drawdown * deeper
            + config.delta * (account.delta * now.underlying * scale).abs()
            + config.costs * costs * scale
            + config.cvar.weight * (-excess - config.cvar.threshold).max(0.0) / (1.0 - config.cvar.confidence);
        config.scale * (measure - penalty)
    }

    /// The values of [`QUANTITIES`].
    fn quantities(&self, market: &Market, before: Before, account: &Account, scale: f64) -> [f64; QUANTITIES.len()] {
        let tables = &market.tables;
        let t = account.t as usize;
        let capital = market.config.capital;
        let underlying = tables.underlying[t];
        let simple = (account.nav - before.nav) * scale;
        let risk_free = tables.accrual[t - 1];
        let deep = drawdown(account.nav, account.peak);
        let collateral = market.collateral(account, underlying);
        [
            simple,
            simple - risk_free,
            libm::log(account.nav.max(1e-3 * capital) * scale),
            risk_free,
            underlying / tables.underlying[t - 1] - 1.0,
            account.nav / capital,
            deep,
            deep - drawdown(before.nav, before.peak),
            (account.traded - before.traded) * scale,
            (account.spread_cost + account.commission - before.costs) * scale,
            (account.interest - before.interest) * scale,
            account.delta * underlying * scale,
            0.01 * account.gamma * underlying * underlying * scale,
            0.01 * account.vega * scale,
            account.theta / 365.0 * scale,
            account.units * underlying * scale,
            match account.margin > 0.0 {
                true => account.margin / collateral.max(1e-3 * capital),
                false => 0.0,
            },
            collateral * scale,
            f64::from(u8::from(account.liquidations > before.liquidations)),
            f64::from(account.lines),
            tables.days[t - 1],
            f64::from(account.t - account.first),
        ]
    }
}

fn drawdown(nav: f64, peak: f64) -> f64 {
    1.0 - nav / peak
}
