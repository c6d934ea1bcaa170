//! The evidence of a verdict: the paired returns of two agents over the steps that all their backtests have.

use super::agent::{Agent, Common, CommonSteps, Step};
use super::verdict::Evidence;
use crate::effective::Dated;
use crate::performance::drawdowns;
use stages_core::{Input, StageError};
use std::fmt::Write as _;

/// The least growth of an account in a step, so that ruin has a logarithm.
const LEAST_GROWTH: f64 = 1e-6;

/// The difference of cash's returns above which two backtests are of other markets.
const SAME_CASH: f64 = 1e-9;

fn log_return(step: &Step) -> f64 {
    libm::log((1.0 + step.account).max(LEAST_GROWTH))
}

/// The mean over seeds of a figure of each step of an episode.
fn mean(seeds: &[Vec<CommonSteps<'_>>], episode: usize, of: fn(&Step) -> f64) -> Vec<f64> {
    let steps = seeds[0][episode].steps.len();
    (0..steps)
        .map(|t| seeds.iter().map(|seed| of(seed[episode].steps[t])).sum::<f64>() / seeds.len() as f64)
        .collect()
}

/// Values of the steps of an episode, with the times at which the steps end.
fn dated(episode: &CommonSteps<'_>, values: impl Iterator<Item = f64>) -> Dated {
    episode.steps.iter().map(|step| step.end).zip(values).collect()
}

fn common_steps<'a>(common: &Common, agents: &'a [Agent]) -> Vec<Vec<CommonSteps<'a>>> {
    agents.iter().map(|agent| common.episodes(agent)).collect()
}

/// The evidence on an agent, the mean of its seeds, against another. `metrics` are those of its backtests.
pub(super) fn evidence(
    common: &Common,
    agents: &[Agent],
    others: &[Agent],
    metrics: &[Input],
) -> Result<Evidence, StageError> {
    let (ours, theirs) = (common_steps(common, agents), common_steps(common, others));
    let mut evidence = Evidence {
        differences: Vec::new(),
        excess: Vec::new(),
        annual: common.annual(),
        drawdown: 0.0,
        costs: 0.0,
        blind: None,
    };
    let mut last = None;
    for episode in 0..ours[0].len() {
        let first = &ours[0][episode];
        for other in ours.iter().chain(&theirs) {
            let mut pairs = first.steps.iter().zip(&other[episode].steps);
            if let Some((a, b)) = pairs.find(|(a, b)| (a.cash - b.cash).abs() > SAME_CASH) {
                return Err(StageError::new(format!(
                    "the backtests are not of the same market: in the step to {} in {} cash earns {} in one \
                    and {} in another",
                    a.end, first.world, a.cash, b.cash
                ))
                .hint("backtest both in one environment: `needs: { env: env, policy: … }`"));
            }
        }
        let (a, b) = (mean(&ours, episode, log_return), mean(&theirs, episode, log_return));
        if last.replace(first.world) != Some(first.world) {
            evidence.differences.push(Vec::new());
            evidence.excess.push(Vec::new());
        }
        if let (Some(world), Some(excess)) = (evidence.differences.last_mut(), evidence.excess.last_mut()) {
            world.extend(dated(first, a.iter().zip(&b).map(|(a, b)| a - b)));
            excess.extend(dated(first, mean(&ours, episode, |step| step.excess).into_iter()));
        }
        evidence.costs += mean(&ours, episode, |step| step.costs).iter().sum::<f64>();
        for seed in &ours {
            let returns: Vec<f64> = seed[episode].steps.iter().map(|step| step.account).collect();
            evidence.drawdown = drawdowns(&returns)
                .into_iter()
                .map(|d| -d)
                .fold(evidence.drawdown, f64::max);
        }
    }
    evidence.costs *= evidence.annual / common.steps as f64;
    let blind = metrics
        .iter()
        .filter_map(|input| input.artifact.meta["summary"]["blind"].as_f64());
    evidence.blind = blind.map(|blind| blind > 0.0).reduce(|a, b| a || b);
    Ok(evidence)
}

/// The equity of both sides from 1 on, the mean of the seeds' log returns, as CSV:
/// `world,time,agent,against`.
pub(super) fn equity(common: &Common, agents: &[Agent], others: &[Agent]) -> String {
    let (ours, theirs) = (common_steps(common, agents), common_steps(common, others));
    let mut text = String::from("world,time,agent,against\n");
    for episode in 0..ours[0].len() {
        let (mut a, mut b) = (0.0, 0.0);
        let returns = mean(&ours, episode, log_return).into_iter();
        let returns = returns.zip(mean(&theirs, episode, log_return));
        let of = &ours[0][episode];
        let world = of.world.replace('"', "\"\"");
        for (step, (our, their)) in of.steps.iter().zip(returns) {
            a += our;
            b += their;
            let (ours, theirs) = (libm::exp(a), libm::exp(b));
            let _ = writeln!(text, "\"{world}\",{},{ours:.6},{theirs:.6}", step.end);
        }
    }
    text
}
