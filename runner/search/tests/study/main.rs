//! Searches over simulated learning curves: the jobs are a function of the results alone, and pruning finds
//! what full evaluation finds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod curves;
mod decisions;
mod pruning;
mod records;

use runner_pipeline::Search;
use runner_search::Settings;
use runner_search::sampler::{Ask, Sampler};
use runner_search::space::Space;
use runner_search::study::{Job, Next, Outcome, Study};
use serde_json::{Value, json};
use stages_numerics::random::Random;

/// A sampler whose proposals depend on all that it is handed.
struct Echo;

impl Sampler for Echo {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        let mut words = vec![ask.seed, u64::from(ask.trial), ask.observed.len() as u64];
        for observed in ask.observed {
            words.extend([u64::from(observed.trial), observed.rung as u64]);
            words.extend(observed.losses.iter().map(|loss| loss.to_bits()));
        }
        words.extend(
            ask.running
                .iter()
                .flat_map(|settings| settings.values())
                .map(|value| value.as_f64().map_or(0, f64::to_bits)),
        );
        draw(&mut Random::new(&words))
    }
}

/// Independent draws.
struct Draws;

impl Sampler for Draws {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        draw(&mut Random::new(&[ask.seed, u64::from(ask.trial)]))
    }
}

fn draw(random: &mut Random) -> Settings {
    let names = ["a", "b", "c", "d"];
    names
        .map(|name| (name.to_owned(), json!(random.uniform())))
        .into_iter()
        .collect()
}

/// A search over four numbers in [0, 1] that minimizes a loss, with further keys of the block.
fn search(keys: Value) -> Search {
    let unit = json!({ "uniform": [0, 1] });
    let mut block = json!({
        "over": { "a": unit, "b": unit, "c": unit, "d": unit },
        "objective": { "minimize": "evaluate.loss" },
    });
    let fields = block.as_object_mut().unwrap();
    fields.extend(keys.as_object().unwrap().clone());
    serde_json::from_value(block).unwrap()
}

fn study(search: &Search, rungs: &[u64], sampler: impl Sampler + 'static) -> Study {
    let rungs = rungs.iter().copied().map(Some).collect();
    Study::new(search, Space::new(&search.over), rungs, Box::new(sampler), Vec::new())
}

/// The jobs of a search to its end, at most `limit` under way, which end in a random order.
fn run(study: &mut Study, limit: usize, order: u64, evaluate: &dyn Fn(&Job) -> Outcome) -> Vec<Job> {
    let mut random = Random::new(&[order]);
    let mut jobs = Vec::new();
    let mut under_way: Vec<Job> = study.under_way().cloned().collect();
    loop {
        let mut next = Next::Wait;
        while under_way.len() < limit {
            next = study.next();
            match &next {
                Next::Job(job) => {
                    jobs.push(job.clone());
                    under_way.push(job.clone());
                }
                _ => break,
            }
        }
        if under_way.is_empty() {
            assert_eq!(next, Next::Done);
            assert!(study.is_done());
            return jobs;
        }
        let job = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
        study.tell(job.job, evaluate(&job));
    }
}

/// The outcome of one seed with one objective.
fn outcome(loss: f64) -> Outcome {
    Outcome {
        objectives: vec![vec![loss]],
        ..Outcome::default()
    }
}
