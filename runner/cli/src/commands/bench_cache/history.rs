//! The cost of earlier runs and of cached trainings for a run with no work.

use super::{Bench, best, failed};
use cache::{ActionKey, Store};
use runner_engine::Failure;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A sweep of the smallest trainings.
fn sweep(trainings: usize) -> String {
    let seeds: Vec<String> = (1..=trainings).map(|seed| seed.to_string()).collect();
    format!(
        "version: 1\nname: sweep\nstages:\n  env: {{ uses: env/classic, with: {{ id: CartPole-v1 }} }}\n  \
        train:\n    uses: train/ppo\n    needs: {{ env: env }}\n    matrix: {{ seed: [{}] }}\n    with: \
        {{ seed: '${{matrix.seed}}', total_timesteps: 128, n_envs: 4, n_steps: 32, batch_size: 128, n_epochs: 1 }}\n",
        seeds.join(", ")
    )
}

impl Bench {
    /// A cached training after many earlier runs, alternating with the same after few.
    pub(super) fn earlier_runs(&mut self) -> Result<(), Failure> {
        let file = self.write("training.yaml", &sweep(1))?.display().to_string();
        let (few, many) = (self.home("few-runs"), self.home("many-runs"));
        for home in [&few, &many] {
            self.exec(home, &["exec", "-q", &file])?;
            self.exec(home, &["exec", "-q", &file])?;
        }
        for count in [1000, 10_000] {
            copy_last_run(&many.join("runs"), count)?;
            let peak = self.peak(&many, &["exec", "-q", &file])?;
            let (mut time, mut floor) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..20 {
                for (home, shortest) in [(&few, &mut floor), (&many, &mut time)] {
                    let exec = || self.exec(home, &["exec", "-q", &file]);
                    *shortest = shortest.min(best(1, || Ok(()), exec)?);
                }
            }
            let what = format!("exec, a cached training after {count} runs");
            self.add(what, time, floor, "the same after a few runs");
            self.with_peak(peak);
        }
        Ok(())
    }

    /// Sweeps of cached trainings.
    pub(super) fn cached_trainings(&mut self) -> Result<(), Failure> {
        let home = self.home("trainings");
        let one = self.write("one.yaml", &sweep(1))?.display().to_string();
        self.exec(&home, &["exec", "-q", &one])?;
        let mut first = None;
        for count in [500, 1000, 5000] {
            let file = self
                .write(&format!("sweep-{count}.yaml"), &sweep(count))?
                .display()
                .to_string();
            let plan = self.output(&home, &["plan", "--json", "--no-remote", &file])?;
            record_trainings(&home, &plan.stdout)?;
            let peak = self.peak(&home, &["exec", "-q", &file])?;
            let time = best(5, || Ok(()), || self.exec(&home, &["exec", "-q", &file]))?;
            let &mut (trainings, milliseconds) = first.get_or_insert((count, time));
            let floor = milliseconds * count as f64 / trainings as f64;
            let about = format!("the time of {trainings}, in proportion");
            self.add(format!("exec, {count} cached trainings"), time, floor, about);
            self.with_peak(peak);
        }
        Ok(())
    }
}

/// Copies the last run under older ids until there are `count` runs.
fn copy_last_run(runs: &Path, count: usize) -> Result<(), Failure> {
    let folders: Result<Vec<PathBuf>, _> = fs::read_dir(runs)
        .map_err(failed)?
        .map(|entry| Ok(entry?.path()))
        .collect();
    let folders = folders.map_err(failed)?;
    let Some(last) = folders.iter().max() else {
        return Ok(());
    };
    let id = last.file_name().unwrap_or_default().to_string_lossy();
    let events = fs::read_to_string(last.join("events.jsonl")).map_err(failed)?;
    let pipeline = fs::read(last.join("pipeline.json")).map_err(failed)?;
    for i in folders.len()..count {
        // Older than every real run, so that the real runs remain the last ones.
        let copy = format!("20200101T000000-{i:05}");
        let folder = runs.join(&copy);
        fs::create_dir(&folder).map_err(failed)?;
        fs::write(folder.join("events.jsonl"), events.replace(&*id, &copy)).map_err(failed)?;
        fs::write(folder.join("pipeline.json"), &pipeline).map_err(failed)?;
    }
    Ok(())
}

/// Records for every training of a plan the result of the cached one.
fn record_trainings(home: &Path, plan: &[u8]) -> Result<(), Failure> {
    let failed = |what: &str| Failure::machine(format!("the plan of a sweep that is measured has no {what}"));
    let plan: Value =
        serde_json::from_slice(plan).map_err(|err| Failure::caused("cannot read a plan", &err))?;
    let stages = plan["stages"].as_array().ok_or_else(|| failed("stages"))?;
    let trainings = stages
        .iter()
        .filter(|stage| stage["stage"].as_str().is_some_and(|id| id.starts_with("train")));
    let keys: Option<Vec<ActionKey>> = trainings.map(|stage| stage["key"].as_str()?.parse().ok()).collect();
    let keys = keys.ok_or_else(|| failed("keys"))?;
    let store = Store::open(home)?;
    let cached = keys.iter().find_map(|key| store.action(*key).transpose());
    let mut record = cached.ok_or_else(|| failed("cached training"))??;
    for key in keys {
        record.key = key;
        store.put_action(&record)?;
    }
    Ok(store.flush()?)
}
