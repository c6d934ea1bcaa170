//! The verdict on a policy against another: better or worse by more than noise, and within limits.

use crate::bootstrap;
use crate::effective::{Dated, by_date, design_effect};
use crate::output::Metrics;
use crate::panel::{Estimate, Sums};
use crate::performance::{interval_95, mean_and_deviation};
use crate::trials::{deflated_sharpe, probabilistic_sharpe};
use stages_core::names;
use stages_core::{ConfigProblem, LEAST_OBSERVATIONS};
use stages_numerics::random::Random;

stages_core::settings! {
    /// The rules of a verdict.
    pub struct VerdictConfig {
        /// Policies that were tried so far, this one included, if more than the agent's backtests say:
        /// `${policies.NAME.tried}`, as the registry knows, or a number. The more there were, the more the
        /// best of them owes to chance.
        pub trials: usize = 1,
        /// Mean length of the bootstrap's blocks, in steps.
        pub block: f64 = 10.0,
        /// The least deflated Sharpe ratio of the differences, a probability.
        pub deflated_sharpe: f64 = 0.95,
        /// The largest drawdown of the agent, as a fraction of its highest value; any if absent.
        pub max_drawdown: Option<f64> = None,
        /// The largest costs of trades of the agent in a year, as a fraction of its value; any if absent.
        pub max_costs: Option<f64> = None,
        /// If true, an agent that is blind by the ablations of its backtest (input `metrics`) is not better.
        pub refuse_blind: bool = true,
    }
}

impl VerdictConfig {
    /// Checks the settings.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("verdict.trials", "must be at least 1")
            .hint("the policy itself is one: `${policies.NAME.tried}` counts it")
            .when(self.trials == 0)?;
        ConfigProblem::new("verdict.block", "must be at least 1 step")
            .hint("the default is 10")
            .when(!(1.0..=1e9).contains(&self.block))?;
        ConfigProblem::new("verdict.deflated_sharpe", "must be a probability below 1")
            .hint("the default is 0.95")
            .when(!(0.0..1.0).contains(&self.deflated_sharpe))?;
        for (name, limit) in [
            ("verdict.max_drawdown", self.max_drawdown),
            ("verdict.max_costs", self.max_costs),
        ] {
            ConfigProblem::new(name, "must be 0 or more")
                .hint("0.2 is a fifth of the account")
                .when(limit.is_some_and(|limit| !(0.0..=1e3).contains(&limit)))?;
        }
        Ok(())
    }
}

/// The verdict on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The agent is ahead by more than noise, and within all limits.
    Better,
    /// The agent is behind by more than noise.
    Worse,
    /// The agent is neither better nor worse.
    Noise,
}

names! { Verdict: Better "better", Worse "worse", Noise "noise" }

impl Verdict {
    /// The verdict as a number among the metrics.
    fn number(self) -> f64 {
        match self {
            Self::Better => 1.0,
            Self::Worse => -1.0,
            Self::Noise => 0.0,
        }
    }
}

/// The facts on which a verdict rests.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The differences of log returns by step, for each world.
    pub differences: Vec<Dated>,
    /// The excess returns of the agent by step, for each world.
    pub excess: Vec<Dated>,
    /// Steps per year; NaN with too few observations.
    pub annual: f64,
    /// The agent's largest drawdown, as a fraction of the highest value.
    pub drawdown: f64,
    /// The costs per year as a fraction of the account's value; NaN if unknown.
    pub costs: f64,
    /// True if the policy is blind by the ablations of its backtest; `None` where these are unknown.
    pub blind: Option<bool>,
}

/// A verdict with the figures that led to it.
#[derive(Debug)]
pub(super) struct Judgement {
    pub verdict: Verdict,
    /// The mean difference of log returns per year.
    pub log_return: Estimate,
    probabilistic: f64,
    deflated: f64,
    agent_probabilistic: f64,
    agent_deflated: f64,
    /// A sentence for each test, in order: what was found, and what is required.
    pub because: Vec<String>,
}

/// Judges an agent.
///
/// The agent is better if the mean difference of log returns is above 0 with 97.5 % confidence, its Sharpe
/// ratio stands out among so many trials, and it keeps the limits; worse if the mean difference is below 0
/// with 97.5 % confidence. The interval is that of the stationary bootstrap over dates, those of all worlds
/// together; with several worlds, each end is the wider of that and the interval over worlds. With two
/// worlds, the interval over worlds alone would exclude 0 in half of all cases without a difference.
pub(super) fn judge(config: &VerdictConfig, evidence: &Evidence, draws: usize, seed: u64) -> Judgement {
    let (all, n) = independent(&evidence.differences);
    let mean = |dates: &[Sums]| {
        let mut all = Sums::default();
        dates.iter().for_each(|date| all.join(date));
        all.mean()
    };
    let dates = by_date(&evidence.differences);
    let (mut low, mut high) = bootstrap::stationary(&dates, config.block, draws, seed, mean);
    if evidence.differences.len() > 1 {
        let (l, h) = over_worlds(&evidence.differences, draws, seed);
        (low, high) = (low.min(l), high.max(h));
    }
    let annual = evidence.annual;
    let log_return = Estimate {
        value: mean_and_deviation(&all).0 * annual,
        low: low * annual,
        high: high * annual,
    };
    let deflated = deflated_sharpe(&all, n, config.trials);
    let (excess, n_excess) = independent(&evidence.excess);
    let mut because = vec![format!(
        "log return a year: {:+.4} more, 95 % interval {:+.4} to {:+.4} over {} steps{}",
        log_return.value,
        log_return.low,
        log_return.high,
        all.len(),
        match evidence.differences.len() {
            1 => String::new(),
            worlds => format!(" of {worlds} worlds"),
        }
    )];
    let mut passed = Vec::new();
    let mut test = |holds: bool, text: String| {
        because.push(format!("{text}: {}", if holds { "yes" } else { "no" }));
        passed.push(holds);
    };
    test(
        all.len() >= LEAST_OBSERVATIONS,
        format!("at least {LEAST_OBSERVATIONS} steps"),
    );
    test(log_return.low > 0.0, "the interval is above 0".to_owned());
    test(
        deflated >= config.deflated_sharpe,
        format!(
            "deflated Sharpe ratio {deflated:.4} of the differences, of {} trials, at least {}",
            config.trials, config.deflated_sharpe
        ),
    );
    if let Some(limit) = config.max_drawdown {
        test(
            evidence.drawdown <= limit,
            format!("largest drawdown {:.4} at most {limit}", evidence.drawdown),
        );
    }
    if let Some(limit) = config.max_costs {
        test(
            evidence.costs <= limit,
            format!("costs a year {:.4} at most {limit}", evidence.costs),
        );
    }
    match evidence.blind {
        Some(blind) if config.refuse_blind => test(!blind, "it uses the market's features".to_owned()),
        Some(_) => {}
        None => because.push("whether it uses the market's features was not tested".to_owned()),
    }
    let verdict = match passed.iter().all(|holds| *holds) {
        true => Verdict::Better,
        false if all.len() >= LEAST_OBSERVATIONS && log_return.high < 0.0 => Verdict::Worse,
        false => Verdict::Noise,
    };
    Judgement {
        verdict,
        log_return,
        probabilistic: probabilistic_sharpe(&all, n, 0.0),
        deflated,
        agent_probabilistic: probabilistic_sharpe(&excess, n_excess, 0.0),
        agent_deflated: deflated_sharpe(&excess, n_excess, config.trials),
        because,
    }
}

/// The values of all worlds, and the number of independent ones among them.
fn independent(worlds: &[Dated]) -> (Vec<f64>, f64) {
    let all: Vec<f64> = worlds.iter().flatten().map(|(_, value)| *value).collect();
    let n = all.len() as f64 / design_effect(worlds);
    (all, n)
}

/// The 95 % interval of the mean difference over other worlds. Out of n worlds, n - 1 are drawn, which makes
/// the variance of a mean of few units unbiased (Rao and Wu 1988).
fn over_worlds(differences: &[Dated], draws: usize, seed: u64) -> (f64, f64) {
    let sums: Vec<(f64, f64)> = differences
        .iter()
        .map(|of| (of.iter().map(|(_, value)| value).sum(), of.len() as f64))
        .collect();
    let mut random = Random::new(&[seed, 0x7665_7264]);
    let drawn: Vec<f64> = (0..draws)
        .map(|_| {
            let (sum, steps) = (1..sums.len()).fold((0.0, 0.0), |(sum, steps), _| {
                let (s, n) = sums[random.below(sums.len() as u64) as usize];
                (sum + s, steps + n)
            });
            sum / steps
        })
        .collect();
    interval_95(&drawn)
}

impl Judgement {
    /// Adds the numbers of the verdict to the metrics.
    pub(super) fn add_to(&self, metrics: &mut Metrics, config: &VerdictConfig, evidence: &Evidence) {
        metrics.add("verdict", self.verdict.number());
        metrics.estimate("difference/log_return", self.log_return);
        metrics.add("difference/probabilistic_sharpe", self.probabilistic);
        metrics.add("difference/deflated_sharpe", self.deflated);
        metrics.add("agent/probabilistic_sharpe", self.agent_probabilistic);
        metrics.add("agent/deflated_sharpe", self.agent_deflated);
        metrics.add("agent/max_drawdown", evidence.drawdown);
        metrics.add("agent/costs", evidence.costs);
        if let Some(blind) = evidence.blind {
            metrics.add("agent/blind", f64::from(u8::from(blind)));
        }
        metrics.add("trials", config.trials as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::tests::{correlated, daily};
    use rayon::prelude::*;

    fn evidence(differences: Vec<Vec<f64>>) -> Evidence {
        let differences: Vec<Dated> = differences.iter().map(|world| daily(world)).collect();
        Evidence {
            excess: differences.clone(),
            differences,
            annual: 252.0,
            drawdown: 0.1,
            costs: 0.01,
            blind: None,
        }
    }

    fn normals(random: &mut Random, n: usize, mean: f64) -> Vec<f64> {
        (0..n).map(|_| 0.01 * (mean + random.normal())).collect()
    }

    fn of(config: &VerdictConfig, evidence: &Evidence) -> Verdict {
        judge(config, evidence, 500, 1).verdict
    }

    #[test]
    fn what_stands_out_is_better_or_worse_and_the_rest_noise() {
        let random = &mut Random::new(&[1]);
        let config = VerdictConfig::default();
        let ahead = evidence(vec![normals(random, 500, 0.3)]);
        let behind = evidence(vec![normals(random, 500, -0.3)]);
        let even = evidence(vec![normals(random, 500, 0.0)]);
        assert_eq!(of(&config, &ahead), Verdict::Better);
        assert_eq!(of(&config, &behind), Verdict::Worse);
        assert_eq!(of(&config, &even), Verdict::Noise);
        assert_eq!(of(&config, &evidence(vec![vec![0.0; 500]])), Verdict::Noise);
        // Too few steps say nothing.
        assert_eq!(of(&config, &evidence(vec![normals(random, 40, 3.0)])), Verdict::Noise);
    }

    #[test]
    fn limits_and_trials_keep_what_is_ahead_from_being_better() {
        let random = &mut Random::new(&[2]);
        let ahead = evidence(vec![normals(random, 500, 0.16)]);
        let default = VerdictConfig::default();
        assert_eq!(of(&default, &ahead), Verdict::Better);
        for config in [
            VerdictConfig {
                trials: 1_000,
                ..default.clone()
            },
            VerdictConfig {
                max_drawdown: Some(0.05),
                ..default.clone()
            },
            VerdictConfig {
                max_costs: Some(0.001),
                ..default.clone()
            },
        ] {
            assert_eq!(of(&config, &ahead), Verdict::Noise, "{config:?}");
        }
        let blind = Evidence {
            blind: Some(true),
            ..ahead
        };
        assert_eq!(of(&default, &blind), Verdict::Noise);
        let told = judge(&default, &blind, 500, 1).because;
        assert_eq!(told.last().unwrap(), "it uses the market's features: no");
        let accepted = VerdictConfig {
            refuse_blind: false,
            ..default
        };
        assert_eq!(of(&accepted, &blind), Verdict::Better);
    }

    /// Two worlds that differ in opposite ways do not make an agent better, however long they are.
    #[test]
    fn worlds_that_disagree_are_noise() {
        let random = &mut Random::new(&[3]);
        let config = VerdictConfig::default();
        let worlds = |means: &[f64], random: &mut Random| {
            evidence(means.iter().map(|mean| normals(random, 400, *mean)).collect())
        };
        assert_eq!(of(&config, &worlds(&[0.9, -0.2, -0.1], random)), Verdict::Noise);
        assert_eq!(of(&config, &worlds(&[0.3, 0.3, 0.3], random)), Verdict::Better);
    }

    /// The same difference in twelve symbols over the same dates is no more evidence than in one.
    #[test]
    fn copies_of_a_world_are_no_more_evidence_than_one() {
        let random = &mut Random::new(&[4]);
        let config = VerdictConfig::default();
        let one = normals(random, 300, 0.07);
        let judged = |worlds: Vec<Vec<f64>>| judge(&config, &evidence(worlds), 500, 1);
        let (alone, copies) = (judged(vec![one.clone()]), judged(vec![one; 12]));
        assert_eq!((alone.verdict, copies.verdict), (Verdict::Noise, Verdict::Noise));
        assert!((alone.deflated - copies.deflated).abs() < 1e-9);
        assert!((alone.log_return.low - copies.log_return.low).abs() < 1e-9);
        let independent: Vec<Vec<f64>> = correlated(random, 12, 300, 0.0)
            .into_iter()
            .map(|world| world.iter().map(|x| 0.01 * (x + 0.07)).collect())
            .collect();
        assert_eq!(judged(independent).verdict, Verdict::Better);
    }

    /// The dates of the test, and the policies that were tried on them: the desk has run for as long.
    const WINDOW: usize = 500;

    /// A season of nights by the rules of `pipelines/champions.yaml`, and the nights on which a policy was
    /// promoted. Each night a challenger is judged against the champion on the last dates, or against a rule
    /// that earns nothing until there is one: the first is better than that, too. From night `from` on each
    /// challenger earns `edge` more a step, in standard deviations of its returns beyond the rule's, of whose
    /// variance the part `shared` is that of every challenger.
    fn season(seed: u64, nights: usize, (from, edge): (usize, f64), shared: f64) -> Vec<usize> {
        let random = &mut Random::new(&[seed, 0x7365_6173]);
        let config = VerdictConfig {
            trials: WINDOW,
            ..VerdictConfig::default()
        };
        let draw = |random: &mut Random, n: usize| (0..n).map(|_| random.normal()).collect::<Vec<f64>>();
        let market = draw(random, WINDOW + nights);
        let mut champion: Option<(Vec<f64>, f64)> = None;
        let mut promoted = Vec::new();
        for night in 0..nights {
            let challenger = (draw(random, WINDOW), if night >= from { edge } else { 0.0 });
            let step = |(own, edge): &(Vec<f64>, f64), i: usize| {
                edge + shared.sqrt() * market[night + i] + (1.0 - shared).sqrt() * own[i]
            };
            let differences = (0..WINDOW).map(|i| {
                let other = champion.as_ref().map_or(0.0, |champion| step(champion, i));
                0.01 * (step(&challenger, i) - other)
            });
            let judged = judge(&config, &evidence(vec![differences.collect()]), 200, night as u64);
            if judged.verdict == Verdict::Better {
                promoted.push(night);
                champion = Some(challenger);
            }
            // The next night's window is a step later.
            if let Some((own, _)) = &mut champion {
                own.rotate_left(1);
                own[WINDOW - 1] = random.normal();
            }
        }
        promoted
    }

    /// docs/studies/statistics.md states these numbers. Challengers that have nothing in common
    /// are the most chances without an edge; with one, they find it the later the more they have in common.
    #[test]
    fn seasons_without_an_edge_promote_seldom_and_one_with_an_edge_finds_it() {
        let (seasons, nights) = (40_u64, 60);
        let of_all = |of: (usize, f64), shared: f64| -> Vec<Vec<usize>> {
            let season = |seed| season(seed, nights, of, shared);
            (0..seasons).into_par_iter().map(season).collect()
        };
        let none = of_all((nights, 0.0), 0.0);
        let promoted: usize = none.iter().map(Vec::len).sum();
        let with = none.iter().filter(|season| !season.is_empty()).count();
        println!(
            "promoted in {promoted} of {} nights, in {with} seasons",
            seasons as usize * nights
        );
        assert!(
            promoted as f64 <= 0.001 * (seasons as usize * nights) as f64,
            "{promoted}"
        );
        for (sharpe, within) in [(4.0, 10), (6.0, 1)] {
            let edge = sharpe / 252.0_f64.sqrt();
            let mut found: Vec<usize> = of_all((20, edge), 0.8)
                .into_iter()
                .map(|season| {
                    let first = season.into_iter().find(|night| *night >= 20);
                    first.map_or(usize::MAX, |night| night - 20 + 1)
                })
                .collect();
            found.sort_unstable();
            println!("a Sharpe ratio of {sharpe}: found after {found:?} nights");
            assert!(found[seasons as usize * 9 / 10 - 1] <= within, "{found:?}");
        }
    }
}
