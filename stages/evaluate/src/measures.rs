//! The measures of a backtest over market data, by name; docs/evaluation.md defines them.

use crate::config::{BacktestConfig, Block};
use crate::market::{Market, Role, Run, Strategy};
use crate::output::Metrics;
use crate::panel::{Episode, Panel, Sums};
use crate::performance::{Performance, Periods, Returns, mean_and_deviation};
use crate::regression::regress;
use crate::trials::{deflated_sharpe, probabilistic_sharpe};

/// The factors of the spread with which the policy's trades are priced again.
const SPREADS: [(&str, f64); 3] = [("half_spread", 0.5), ("double_spread", 2.0), ("triple_spread", 3.0)];

/// Facts about the test data that are known.
pub(crate) struct Known {
    pub periods: Periods,
    /// The names of the regimes, in the order of their numbers.
    pub regimes: Vec<String>,
}

/// All measures. The first strategy is the policy.
pub(crate) fn measure<S: Market>(
    config: &BacktestConfig,
    strategies: &[Strategy<S>],
    known: &Known,
) -> Metrics {
    let returns: Vec<Vec<Returns>> = strategies
        .iter()
        .map(|strategy| strategy.runs.iter().map(|run| run.returns(1.0)).collect())
        .collect();
    let holding = holding_period(&strategies[0].runs);
    let block = match config.bootstrap_block {
        Block::Auto(_) => holding.clamp(
            1.0,
            (strategies[0].runs[0].returns(1.0).excess.len() as f64 / 4.0).max(1.0),
        ),
        Block::Steps(steps) => steps,
    };
    let panel = Panel::new(
        &episodes(strategies, &returns),
        block,
        config.bootstrap_draws,
        config.seed,
    );
    let observations = returns[0].iter().map(|run| run.excess.len()).sum();
    let this = Measures {
        config,
        known,
        strategies,
        returns: &returns,
        panel: &panel,
        annual: known.periods.annual(observations),
    };
    let mut metrics = Metrics::default();
    for (at, strategy) in strategies.iter().enumerate() {
        this.performance(at, &strategy.prefix(), &mut metrics);
        match strategy.role {
            Role::Policy => this.worlds(&mut metrics),
            Role::Baseline => this.versus(at, &mut metrics),
            Role::Ablation => this.loss(at, &mut metrics),
            Role::Mode => {}
        }
    }
    this.share_of_oracle(&mut metrics);
    this.spreads(&mut metrics);
    this.profits(&mut metrics);
    this.by_regime(&mut metrics);
    let runs = &strategies[0].runs;
    for (name, value) in S::measures(runs) {
        metrics.add(name, value);
    }
    metrics.add(
        "steps",
        runs.iter().map(|run| run.statements.len() - 1).sum::<usize>() as f64,
    );
    metrics.add("periods_a_year", known.periods.per_year);
    metrics.add("worlds", panel.worlds() as f64);
    metrics.add("holding_period", holding);
    metrics.add("bootstrap_block", block);
    metrics
}

/// The excess returns by episode, strategy and path.
fn episodes<'a, S: Market>(strategies: &'a [Strategy<S>], returns: &'a [Vec<Returns>]) -> Vec<Episode<'a>> {
    let policy = &strategies[0].runs;
    policy
        .iter()
        .map(|of| Episode {
            world: &of.world,
            strategies: strategies
                .iter()
                .zip(returns)
                .map(|(strategy, returns)| {
                    let runs = strategy.runs.iter().zip(returns);
                    runs.filter(|(run, _)| run.episode == of.episode)
                        .map(|(_, r)| r.excess.as_slice())
                        .collect()
                })
                .collect(),
        })
        .collect()
}

/// The mean time for which a position is held, in steps, at least 1: by Little's law, what is held divided by
/// what is opened.
fn holding_period<S: Market>(runs: &[Run<S>]) -> f64 {
    let steps = runs.iter().flat_map(Run::steps);
    let (held, opened) = steps.fold((0.0, 0.0), |sum, (before, after, record)| {
        let (held, opened) = S::held(before, after, record);
        (sum.0 + held, sum.1 + opened)
    });
    if opened > 0.0 {
        (held / opened).max(1.0)
    } else {
        held.max(1.0)
    }
}

struct Measures<'a, S: Market> {
    config: &'a BacktestConfig,
    known: &'a Known,
    strategies: &'a [Strategy<S>],
    returns: &'a [Vec<Returns>],
    panel: &'a Panel,
    /// Periods per year; NaN with too few observations.
    annual: f64,
}

impl<S: Market> Measures<'_, S> {
    fn excess_return(&self, sums: &Sums) -> f64 {
        self.annual * sums.mean()
    }

    fn sharpe(&self, sums: &Sums) -> f64 {
        self.annual.sqrt() * sums.sharpe()
    }

    fn utility(&self, sums: &Sums) -> f64 {
        self.annual * sums.utility(self.config.risk_aversion)
    }

    /// The measures of one strategy, with intervals.
    fn performance(&self, at: usize, prefix: &str, metrics: &mut Metrics) {
        let (strategy, returns) = (&self.strategies[at], &self.returns[at]);
        let measured = Performance::of(returns, self.known.periods);
        for (name, value) in measured.named() {
            metrics.add(format!("{prefix}{name}"), value);
        }
        if measured.sharpe.is_finite() {
            metrics.interval(&format!("{prefix}sharpe"), self.panel.estimate(|s| self.sharpe(&s[at])));
        }
        let mean = self.panel.estimate(|s| self.excess_return(&s[at]));
        metrics.interval(&format!("{prefix}excess_return"), mean);
        metrics.estimate(
            &format!("{prefix}utility"),
            self.panel.estimate(|s| self.utility(&s[at])),
        );
        if strategy.role == Role::Ablation {
            return;
        }
        let (alpha, beta) = regress(returns);
        for (name, of, scale) in [("alpha", alpha, self.annual), ("beta", beta, 1.0)] {
            metrics.estimate(&format!("{prefix}{name}"), of.scaled(scale));
        }
        let pooled: Vec<f64> = returns.iter().flat_map(|run| &run.excess).copied().collect();
        metrics.add(
            format!("{prefix}probabilistic_sharpe"),
            probabilistic_sharpe(&pooled, 0.0),
        );
        if strategy.role == Role::Policy {
            metrics.add("deflated_sharpe", deflated_sharpe(&pooled, self.config.trials));
            metrics.add("trials", self.config.trials as f64);
        }
        for (k, (name, _)) in account(&strategy.runs[0], self.annual).into_iter().enumerate() {
            let values: Vec<f64> = strategy.runs.iter().map(|run| account(run, self.annual)[k].1).collect();
            metrics.add(format!("{prefix}{name}"), mean_and_deviation(&values).0);
        }
    }

    /// Adds the mean over worlds, with the interval over worlds.
    fn worlds(&self, metrics: &mut Metrics) {
        let (draws, seed) = (self.config.bootstrap_draws, self.config.seed);
        let mean_of_worlds =
            |of: &dyn Fn(&Sums) -> f64| self.panel.mean_of_worlds(draws, seed, |s| of(&s[0]));
        metrics.estimate("per_world/excess_return", mean_of_worlds(&|s| self.excess_return(s)));
        metrics.estimate("per_world/sharpe", mean_of_worlds(&|s| self.sharpe(s)));
    }

    /// Adds the difference between the policy and a baseline, paired.
    fn versus(&self, at: usize, metrics: &mut Metrics) {
        let name = &self.strategies[at].name;
        let total = |of: usize| Performance::of(&self.returns[of], self.known.periods).total_return;
        metrics.add(format!("excess_over/{name}"), total(0) - total(at));
        let mut add = |what: &str, of: &dyn Fn(&Sums, &Sums) -> f64| {
            metrics.estimate(
                &format!("versus/{name}/{what}"),
                self.panel.estimate(|s| of(&s[0], &s[at])),
            );
        };
        add("excess_return", &|a, b| self.excess_return(a) - self.excess_return(b));
        add("sharpe", &|a, b| self.sharpe(a) - self.sharpe(b));
        add("utility", &|a, b| self.utility(a) - self.utility(b));
        add("matched_excess_return", &|a, b| {
            self.excess_return(a) - b.leverage_to(a) * self.excess_return(b)
        });
        let whole = self.panel.whole();
        metrics.add(format!("baseline/{name}/leverage"), whole[at].leverage_to(&whole[0]));
    }

    /// Adds the excess return over equal weights as a share of the oracle's, paired, where both are among the
    /// baselines.
    fn share_of_oracle(&self, metrics: &mut Metrics) {
        let at = |name: &str| {
            let of = |strategy: &Strategy<S>| strategy.role == Role::Baseline && strategy.name == name;
            self.strategies.iter().position(of)
        };
        let (Some(equal), Some(oracle)) = (at("equal_weight"), at("oracle")) else {
            return;
        };
        let over = |s: &[Sums], of: usize| self.excess_return(&s[of]) - self.excess_return(&s[equal]);
        metrics.estimate("share_of_oracle", self.panel.estimate(|s| over(s, 0) / over(s, oracle)));
    }

    /// Adds the cost of an ablation, paired. The policy is blind if other markets' features cost it nothing.
    fn loss(&self, at: usize, metrics: &mut Metrics) {
        let name = &self.strategies[at].name;
        let of = |of: &dyn Fn(&Sums) -> f64| self.panel.estimate(|s| of(&s[0]) - of(&s[at]));
        let utility = of(&|s| self.utility(s));
        metrics.estimate(
            &format!("ablation/{name}/loss_excess_return"),
            of(&|s| self.excess_return(s)),
        );
        metrics.estimate(&format!("ablation/{name}/loss_sharpe"), of(&|s| self.sharpe(s)));
        metrics.estimate(&format!("ablation/{name}/loss_utility"), utility);
        if name == "other_world" {
            let blind = if utility.low.is_nan() {
                f64::NAN
            } else {
                f64::from(utility.low <= 0.0)
            };
            metrics.add("blind", blind);
        }
    }

    /// Adds the results of the policy's trades at other spreads.
    fn spreads(&self, metrics: &mut Metrics) {
        for (name, spread) in SPREADS {
            let returns: Vec<Returns> =
                self.strategies[0].runs.iter().map(|run| run.returns(spread)).collect();
            let measured = Performance::of(&returns, self.known.periods);
            for (what, value) in [
                ("total_return", measured.total_return),
                ("excess_return", measured.excess_return),
                ("sharpe", measured.sharpe),
            ] {
                metrics.add(format!("{name}/{what}"), value);
            }
        }
    }

    /// Adds the policy's profit by cause as a fraction of its capital, as the mean over runs.
    fn profits(&self, metrics: &mut Metrics) {
        let runs = &self.strategies[0].runs;
        let causes = runs[0].profits().next().map_or(S::PROFITS.len(), |by| by.len());
        let mut total = vec![0.0; causes];
        for run in runs {
            for by in run.profits() {
                let scale = 1.0 / (run.first().nav * runs.len() as f64);
                total.iter_mut().zip(by).for_each(|(total, by)| *total += by * scale);
            }
        }
        for (name, value) in S::PROFITS.iter().zip(&total) {
            metrics.add(format!("profit/{name}"), *value);
        }
        metrics.add("profit/total", total.iter().sum());
    }

    /// Adds the excess returns by the regime at the start of each step, where regimes are known.
    fn by_regime(&self, metrics: &mut Metrics) {
        for (number, name) in self.known.regimes.iter().enumerate() {
            let mut regime_excess = Vec::new();
            let mut steps = 0;
            for (run, returns) in self.strategies[0].runs.iter().zip(&self.returns[0]) {
                steps += run.regimes.len();
                let excess = run.regimes.iter().zip(&returns.excess);
                regime_excess.extend(excess.filter(|(regime, _)| **regime == number).map(|(_, e)| *e));
            }
            let (mean, deviation) = mean_and_deviation(&regime_excess);
            let annual = self.known.periods.annual(regime_excess.len());
            metrics.add(
                format!("regime/{name}/share"),
                regime_excess.len() as f64 / steps as f64,
            );
            metrics.add(format!("regime/{name}/excess_return"), mean * annual);
            metrics.add(format!("regime/{name}/volatility"), deviation * annual.sqrt());
        }
    }
}

/// Measures of an account beyond its returns.
fn account<S: Market>(run: &Run<S>, annual: f64) -> [(&'static str, f64); 3] {
    let (first, last) = (run.first(), S::statement(run.last()));
    let mean_nav = run
        .statements
        .iter()
        .map(|account| S::statement(account).nav)
        .sum::<f64>()
        / run.statements.len() as f64;
    [
        // Value traded a year, as a multiple of the mean net asset value.
        (
            "turnover",
            last.traded_value / mean_nav * annual / (run.statements.len() - 1) as f64,
        ),
        // All costs of trades, as a fraction of the capital at the start.
        ("costs", last.costs / first.nav),
        ("liquidations", last.liquidations),
    ]
}
