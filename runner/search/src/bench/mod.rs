//! `runner bench search`: the regret of each sampler on known functions, beside Optuna's at equal budget, and
//! the time of a proposal. `reference/README.md` says how Optuna's numbers were made.

pub mod functions;

use crate::Settings;
use crate::sampler::{Ask, Observed, sampler};
use functions::{FUNCTIONS, Function};
use runner_pipeline::SamplerName;
use serde::{Deserialize, Serialize};
use stages_numerics::statistics::median;
use std::time::Instant;

/// The searches of each sampler, each with a seed of its own.
const SEEDS: u64 = 20;

/// The trials after which the regret is taken.
const BUDGETS: [usize; 2] = [64, 200];

/// A sampler on a function.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The sampler.
    pub sampler: SamplerName,
    /// The function.
    pub function: &'static str,
    /// The trials of a search.
    pub trials: usize,
    /// The median over the searches of the least value found, above the least value that there is.
    pub median_regret: f64,
    /// The median of Optuna's sampler.
    pub optuna: Option<f64>,
    /// The median time of the last eight proposals, in milliseconds.
    pub milliseconds_per_proposal: f64,
}

/// A row of `reference/optuna.json`.
#[derive(Deserialize)]
struct Reference {
    function: String,
    sampler: SamplerName,
    trials: usize,
    regrets: Vec<f64>,
}

/// The regrets of one search after each trial, and the seconds of each proposal.
pub(crate) fn search(function: &Function, name: SamplerName, seed: u64, trials: usize) -> Vec<(f64, f64)> {
    let (space, sampler) = (function.space(), sampler(name));
    let mut observed: Vec<Observed> = Vec::with_capacity(trials);
    let mut least = f64::INFINITY;
    let mut all = Vec::with_capacity(trials);
    for trial in 0..trials as u32 {
        let started = Instant::now();
        let settings: Settings = sampler.propose(&Ask {
            space: &space,
            seed,
            trial,
            observed: &observed,
            running: &[],
        });
        let seconds = started.elapsed().as_secs_f64();
        let regret = function.regret(&settings);
        least = least.min(regret);
        all.push((least, seconds));
        observed.push(Observed {
            trial,
            settings,
            rung: 0,
            losses: vec![regret],
            violation: 0.0,
        });
    }
    all
}

/// The searches of all seeds, over the CPUs.
pub fn searches(function: &Function, name: SamplerName, trials: usize, seeds: u64) -> Vec<Vec<(f64, f64)>> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    std::thread::scope(|scope| {
        let worker = |first: u64| {
            let seeds = (first..seeds).step_by(threads as usize);
            move || {
                seeds
                    .map(|seed| search(function, name, seed, trials))
                    .collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(worker(first))).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    })
}

/// The rows of all samplers on the functions that they can search; with `sweep`, the Gaussian process goes on
/// to 200 trials, which takes minutes.
pub fn bench(sweep: bool) -> Vec<BenchRow> {
    let reference: Vec<Reference> =
        serde_json::from_str(include_str!("../../reference/optuna.json")).unwrap_or_default();
    let all = [
        SamplerName::Random,
        SamplerName::Sobol,
        SamplerName::Tpe,
        SamplerName::CmaEs,
        SamplerName::Gp,
    ];
    let mut rows = Vec::new();
    for name in all {
        for function in FUNCTIONS {
            if sampler(name).refuses(&function.space(), 1).is_some() {
                continue;
            }
            let budgets = if sweep || name != SamplerName::Gp {
                &BUDGETS[..]
            } else {
                &BUDGETS[..1]
            };
            let most = budgets.iter().copied().max().unwrap_or_default();
            let searches = searches(&function, name, most, SEEDS);
            for &trials in budgets {
                let mut regrets: Vec<f64> = searches.iter().map(|search| search[trials - 1].0).collect();
                let mut seconds: Vec<f64> = searches
                    .iter()
                    .flat_map(|search| search[trials - 8..trials].iter().map(|(_, seconds)| *seconds))
                    .collect();
                let same = |row: &&Reference| {
                    row.function == function.name && row.sampler == name && row.trials == trials
                };
                let optuna = reference.iter().find(same);
                rows.push(BenchRow {
                    sampler: name,
                    function: function.name,
                    trials,
                    median_regret: median(&mut regrets).unwrap_or(f64::NAN),
                    optuna: optuna.and_then(|row| median(&mut row.regrets.clone())),
                    milliseconds_per_proposal: 1e3 * median(&mut seconds).unwrap_or(f64::NAN),
                });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The known minima are those of the functions: nothing random is below.
    #[test]
    fn regrets_are_above_the_known_minima() {
        let minima = [
            json!({"x": std::f64::consts::PI, "y": 2.275}),
            json!({
                "x0": 0.20169, "x1": 0.150011, "x2": 0.476874,
                "x3": 0.275332, "x4": 0.311652, "x5": 0.6573,
            }),
            json!({"x0": 1.3, "x1": -2.2, "x2": 0.7, "x3": -0.4, "x4": 2.9}),
            json!({
                "activation": "gelu", "layers": 3, "learning_rate": 0.000630957344480193,
                "momentum": 0.85, "units": 128,
            }),
            json!({
                "clip": 0.2, "optimiser": "sgd", "sgd_rate": 0.03162277660168379,
                "momentum": 0.9, "nesterov": true,
            }),
        ];
        for (function, minimum) in FUNCTIONS.iter().zip(minima) {
            let settings: Settings = serde_json::from_value(minimum).unwrap();
            assert!(function.space().contains(&settings), "{}", function.name);
            let regret = function.regret(&settings);
            assert!(regret.abs() < 1e-6, "{}: {regret}", function.name);
            let random = search(function, SamplerName::Random, 0, 500);
            assert!(random[499].0 > 0.0 && random[499].0 < random[0].0);
        }
    }

    #[test]
    fn optunas_numbers_are_of_our_functions() {
        let rows: Vec<Reference> = serde_json::from_str(include_str!("../../reference/optuna.json")).unwrap();
        let known = |row: &Reference| {
            FUNCTIONS.iter().any(|function| function.name == row.function) && BUDGETS.contains(&row.trials)
        };
        assert!(rows.iter().all(|row| known(row) && row.regrets.len() == SEEDS as usize));
        let count = |name| rows.iter().filter(|row| row.sampler == name).count();
        assert_eq!(
            (
                count(SamplerName::Random),
                count(SamplerName::Tpe),
                count(SamplerName::CmaEs)
            ),
            (10, 10, 6)
        );
    }
}
