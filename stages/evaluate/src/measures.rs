//! The measures of a backtest over market data, by name.

use crate::account::{Account, Accounts, COSTS, HELD, LIQUIDATIONS, OPENED, TRADED_VALUE};
use crate::bootstrap::longest_block;
use crate::config::Block;
use crate::effective::{Dated, design_effect};
use crate::inference::holm;
use crate::market::Role;
use crate::output::Metrics;
use crate::panel::{Episode, Panel, Sums};
use crate::performance::{Performance, Periods, Returns, mean_and_deviation, over_paths};
use crate::regression::regress;
use crate::trials::{deflated_sharpe, probabilistic_sharpe};

/// The factors of the spread with which the policy's trades are priced again.
const SPREADS: [(&str, f64); 3] = [("half_spread", 0.5), ("double_spread", 2.0), ("triple_spread", 3.0)];

/// The settings of the measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub seed: u64,
    pub bootstrap_draws: usize,
    pub bootstrap_block: Block,
    pub risk_aversion: f64,
    pub trials: usize,
}

/// Facts about the test data that are known.
pub(crate) struct Known {
    pub periods: Periods,
    /// The names of the regimes, in order.
    pub regimes: Vec<String>,
    /// The names of the causes of profit, in the order of [`Account::profits`], and others, perhaps.
    pub causes: Vec<String>,
}

/// All measures. The first strategy is the policy, with one path.
pub(crate) fn measure(settings: &Settings, strategies: &[Accounts], known: &Known) -> Metrics {
    let returns: Vec<Vec<Returns>> = strategies
        .iter()
        .map(|strategy| strategy.accounts.iter().map(|account| account.returns(1.0)).collect())
        .collect();
    let policy = &strategies[0].accounts;
    let holding = holding_period(policy);
    let block = match settings.bootstrap_block {
        Block::Auto(_) => holding.clamp(1.0, longest_block(policy[0].len())),
        Block::Steps(steps) => steps,
    };
    let panel = Panel::new(
        &episodes(strategies, &returns),
        block,
        settings.bootstrap_draws,
        settings.seed,
    );
    let steps = policy.iter().map(Account::len).sum();
    let this = Measures {
        settings,
        known,
        strategies,
        returns: &returns,
        panel: &panel,
        annual: known.periods.annual(steps),
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
    this.corrected(&mut metrics);
    this.shares(&mut metrics);
    this.spreads(&mut metrics);
    this.profits(&mut metrics);
    this.by_regime(&mut metrics);
    metrics.add("steps", policy.iter().map(Account::end).sum::<usize>() as f64);
    metrics.add("periods_a_year", known.periods.per_year);
    metrics.add("risk_aversion", settings.risk_aversion);
    metrics.add("worlds", panel.worlds() as f64);
    metrics.add("holding_period", holding);
    metrics.add("bootstrap_block", block);
    metrics
}

/// The excess returns by episode, strategy and path.
fn episodes<'a>(strategies: &'a [Accounts], returns: &'a [Vec<Returns>]) -> Vec<Episode<'a>> {
    let policy = &strategies[0].accounts;
    policy
        .iter()
        .map(|of| Episode {
            world: &of.world,
            times: &of.times[..of.len()],
            strategies: strategies
                .iter()
                .zip(returns)
                .map(|(strategy, returns)| {
                    let runs = strategy.accounts.iter().zip(returns);
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
fn holding_period(accounts: &[Account]) -> f64 {
    let sum = |which: usize| accounts.iter().flat_map(|account| &account.steps[which]).sum::<f64>();
    let (held, opened) = (sum(HELD), sum(OPENED));
    if opened > 0.0 {
        (held / opened).max(1.0)
    } else {
        held.max(1.0)
    }
}

struct Measures<'a> {
    settings: &'a Settings,
    known: &'a Known,
    strategies: &'a [Accounts],
    returns: &'a [Vec<Returns>],
    panel: &'a Panel,
    /// Periods per year; NaN with too few observations.
    annual: f64,
}

impl Measures<'_> {
    fn excess_return(&self, sums: &Sums) -> f64 {
        self.annual * sums.mean()
    }

    fn sharpe(&self, sums: &Sums) -> f64 {
        self.annual.sqrt() * sums.sharpe()
    }

    fn utility(&self, sums: &Sums) -> f64 {
        self.annual * sums.utility(self.settings.risk_aversion)
    }

    /// The number of a strategy's runs over each episode; the policy has one.
    fn paths(&self, at: usize) -> usize {
        self.strategies[at].accounts.len() / self.strategies[0].accounts.len()
    }

    /// A figure of the steps of each episode by world, with the times of the steps.
    fn by_world(&self, episodes: &[Returns], of: impl Fn(&Returns) -> Vec<f64>) -> Vec<Dated> {
        let runs: Vec<_> = self.strategies[0].accounts.iter().zip(episodes).collect();
        let worlds = runs.chunk_by(|(a, _), (b, _)| a.world == b.world);
        worlds
            .map(|world| {
                let steps = world
                    .iter()
                    .flat_map(|(run, returns)| run.times.iter().copied().zip(of(returns)));
                steps.collect()
            })
            .collect()
    }

    /// The measures of one strategy, with intervals.
    fn performance(&self, at: usize, prefix: &str, metrics: &mut Metrics) {
        let (strategy, returns) = (&self.strategies[at], &self.returns[at]);
        let paths = self.paths(at);
        let measured = Performance::of(returns, paths, self.known.periods);
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
        let data = over_paths(returns, paths);
        let (alpha, beta) = regress(&data);
        // Residuals of worlds over the same dates may move together.
        let residual = |run: &Returns| -> Vec<f64> {
            let pairs = run.excess.iter().zip(&run.underlying);
            pairs.map(|(e, u)| e - beta.value * u).collect()
        };
        let wider = design_effect(&self.by_world(&data, residual)).sqrt();
        for (name, of, scale) in [("alpha", alpha, self.annual), ("beta", beta, 1.0)] {
            metrics.estimate(&format!("{prefix}{name}"), of.widened(wider).scaled(scale));
        }
        let pooled: Vec<f64> = data.iter().flat_map(|run| &run.excess).copied().collect();
        let n = pooled.len() as f64 / design_effect(&self.by_world(&data, |run| run.excess.clone()));
        metrics.add(
            format!("{prefix}probabilistic_sharpe"),
            probabilistic_sharpe(&pooled, n, 0.0),
        );
        if strategy.role == Role::Policy {
            metrics.add("deflated_sharpe", deflated_sharpe(&pooled, n, self.settings.trials));
            metrics.add("independent_steps", n);
            metrics.add("trials", self.settings.trials as f64);
        }
        let of_accounts: Vec<_> = strategy.accounts.iter().map(|run| account(run, self.annual)).collect();
        for (k, (name, _)) in of_accounts[0].iter().enumerate() {
            let values: Vec<f64> = of_accounts.iter().map(|of| of[k].1).collect();
            metrics.add(format!("{prefix}{name}"), mean_and_deviation(&values).0);
        }
    }

    /// Adds the mean over worlds, with the interval over worlds.
    fn worlds(&self, metrics: &mut Metrics) {
        let mean = self.panel.mean_of_worlds(|s| self.excess_return(s));
        metrics.estimate("per_world/excess_return", mean);
        metrics.estimate("per_world/sharpe", self.panel.mean_of_worlds(|s| self.sharpe(s)));
    }

    /// The excess return of the policy less that of a baseline at the policy's volatility.
    fn matched(&self, policy: &Sums, baseline: &Sums) -> f64 {
        self.excess_return(policy) - baseline.leverage_to(policy) * self.excess_return(baseline)
    }

    /// Adds the p-values of the differences at matched volatility, corrected for the number of baselines.
    fn corrected(&self, metrics: &mut Metrics) {
        let all = self.strategies.iter().enumerate();
        let baselines: Vec<(usize, &str)> = all
            .filter(|(_, strategy)| strategy.role == Role::Baseline)
            .map(|(at, strategy)| (at, strategy.name.as_str()))
            .collect();
        let p_value = |(at, _): &(usize, &str)| self.panel.p_value(|s| self.matched(&s[0], &s[*at]));
        let p: Vec<f64> = baselines.iter().map(p_value).collect();
        for ((_, name), p) in baselines.into_iter().zip(holm(&p)) {
            metrics.add(format!("versus/{name}/matched_excess_return_p"), p);
        }
    }

    /// Adds the difference between the policy and a baseline, paired.
    fn versus(&self, at: usize, metrics: &mut Metrics) {
        let name = &self.strategies[at].name;
        let total =
            |of: usize| Performance::of(&self.returns[of], self.paths(of), self.known.periods).total_return;
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
        add("matched_excess_return", &|a, b| self.matched(a, b));
        let whole = self.panel.whole();
        metrics.add(format!("baseline/{name}/leverage"), whole[at].leverage_to(&whole[0]));
    }

    /// Adds the excess return over equal weights as a share of that of the oracle and of the best rule,
    /// paired, where both are among the baselines.
    fn shares(&self, metrics: &mut Metrics) {
        let at = |name: &str| {
            let of = |strategy: &Accounts| strategy.role == Role::Baseline && strategy.name == name;
            self.strategies.iter().position(of)
        };
        let Some(equal) = at("equal_weight") else {
            return;
        };
        let over = |s: &[Sums], of: usize| self.excess_return(&s[of]) - self.excess_return(&s[equal]);
        for (name, baseline) in [("share_of_oracle", "oracle"), ("share_of_rule", "best_rule")] {
            if let Some(best) = at(baseline) {
                metrics.estimate(name, self.panel.estimate(|s| over(s, 0) / over(s, best)));
            }
        }
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
            let accounts = self.strategies[0].accounts.iter();
            let returns: Vec<Returns> = accounts.map(|account| account.returns(spread)).collect();
            let measured = Performance::of(&returns, self.paths(0), self.known.periods);
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
        let accounts = &self.strategies[0].accounts;
        let mut total = vec![0.0; accounts[0].profits.len()];
        for account in accounts {
            let scale = 1.0 / (account.nav[0] * accounts.len() as f64);
            for (total, steps) in total.iter_mut().zip(&account.profits) {
                *total += steps.iter().sum::<f64>() * scale;
            }
        }
        for (name, value) in self.known.causes.iter().zip(&total) {
            metrics.add(format!("profit/{name}"), *value);
        }
        metrics.add("profit/total", total.iter().sum());
    }

    /// Adds the excess returns by the regime at the start of each step, where regimes are known.
    fn by_regime(&self, metrics: &mut Metrics) {
        for name in &self.known.regimes {
            let mut regime_excess = Vec::new();
            let mut steps = 0;
            for (account, returns) in self.strategies[0].accounts.iter().zip(&self.returns[0]) {
                let excess = account.regimes.iter().zip(&returns.excess);
                steps += account.regimes.iter().flatten().count();
                regime_excess.extend(
                    excess
                        .filter(|(regime, _)| regime.as_ref() == Some(name))
                        .map(|(_, e)| *e),
                );
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
fn account(run: &Account, annual: f64) -> Vec<(&'static str, f64)> {
    let (first, end) = (run.nav[0], run.end());
    let mean_nav = run.nav[..=end].iter().sum::<f64>() / (end + 1) as f64;
    let mut measures = vec![
        // Value traded a year, as a multiple of the mean net asset value.
        ("turnover", run.sum(TRADED_VALUE) / mean_nav * annual / end as f64),
        // All costs of trades, as a fraction of the capital at the start.
        ("costs", run.sum(COSTS) / first),
        ("liquidations", run.sum(LIQUIDATIONS)),
    ];
    // The part of the costs that closed positions at the ends of folds.
    measures.extend(run.closed.map(|closed| ("closing_cost", closed / first)));
    measures
}
