//! The time of planning large pipelines, in proportion to their stages.

use super::{Bench, best, failed, pipeline};
use crate::registry;
use cache::Store;
use runner_engine::{Failure, prepare};
use runner_pipeline::{LoadOptions, Node, load};
use stages_core::StageError;
use stages_core::event::Silent;
use std::collections::BTreeMap;
use std::path::Path;

impl Bench {
    /// Pipelines of 10,000 and 30,000 stages: planned with an empty store, and planned and executed with
    /// every result in the store.
    pub(super) fn large_pipelines(&mut self) -> Result<(), Failure> {
        let mut first: Option<[f64; 3]> = None;
        for stages in [10_000, 30_000] {
            let file = self.write(&format!("{stages}.yaml"), &pipeline(stages, None))?;
            let file = file.display().to_string();
            let mut homes = (0..).map(|i| self.home(&format!("planned-{stages}-{i}")));
            let plan = || self.exec(&homes.next().unwrap_or_default(), &["plan", &file]);
            let cold = best(3, || Ok(()), plan)?;
            let home = self.home(&format!("recorded-{stages}"));
            self.record_stages(&home, Path::new(&file))?;
            let cached = |arguments: &[&str]| -> Result<f64, Failure> {
                self.exec(&home, arguments)?;
                best(3, || Ok(()), || self.exec(&home, arguments))
            };
            let planned = cached(&["plan", &file])?;
            let executed = cached(&["exec", "-q", &file])?;
            let peak = self.peak(&home, &["exec", "-q", &file])?;
            let times = [cold, planned, executed];
            let whats = [
                "plan, {} stages, nothing cached",
                "plan, {} stages, all cached",
                "exec, {} stages, nothing to do",
            ];
            let few = *first.get_or_insert(times);
            for (i, what) in whats.into_iter().enumerate() {
                let floor = few[i] * stages as f64 / 10_000.0;
                let what = what.replace("{}", &stages.to_string());
                self.add(what, times[i], floor, "the time of 10000, in proportion");
            }
            self.with_peak(peak);
        }
        Ok(())
    }

    /// Runs the first stage of a pipeline of trivial programs, and records its result for every other stage.
    fn record_stages(&self, home: &Path, file: &Path) -> Result<(), Failure> {
        let wrong =
            |err: StageError| Failure::machine(format!("cannot record a stage that is measured: {err}"));
        self.exec(home, &["exec", "-q", &file.display().to_string(), "s0"])?;
        let pipeline = load(file, &LoadOptions::new(registry::kinds()))
            .map_err(|err| Failure::usage(err.to_string()))?;
        let store = Store::open(home)?;
        let prepared = |node: &Node, output| {
            let inputs = node.needs.keys().map(|port| (port.clone(), vec![output])).collect();
            prepare(node, inputs, &store, false, &Silent).map_err(wrong)
        };
        let first = prepare(&pipeline.nodes[0], BTreeMap::new(), &store, false, &Silent).map_err(wrong)?;
        let record = store.action(first.key)?;
        let mut record = record.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        let output = record.outputs["x"];
        for node in &pipeline.nodes[1..] {
            let prepared = prepared(node, output)?;
            record.key = prepared.key;
            record.recipe = prepared.recipe.to_json();
            store.put_action(&record)?;
        }
        Ok(store.flush()?)
    }
}
