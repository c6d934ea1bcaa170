//! The jobs of a search in a run: decided, placed, and told when their stages have ended.

use super::nodes::Named;
use super::{Driver, Running, Trial};
use crate::record::{self, Line};
use crate::study::{Job, Next, Outcome};
use cache::ArtifactDigest;
use runner_engine::Failure;
use runner_history::figures;
use runner_pipeline::MetricOf;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

impl Driver<'_> {
    /// Places the nodes of a job.
    pub(super) fn place(&mut self, job: &Job) -> Result<(), Failure> {
        let first = self.placed.next();
        let mut seeds = Vec::new();
        let mut left = BTreeSet::new();
        // Another seed at the first rung: nodes with the same content there depend on neither.
        let trial = self.variant(&job.settings, self.seeds.other(), 0)?;
        let variants = (0..self.seeds.count).map(|seed| self.variant(&job.settings, seed, job.rung));
        let variants = variants.collect::<Result<Vec<_>, _>>()?;
        for (seed, variant) in (0..).zip(variants) {
            let mut axes = BTreeMap::from([("trial".to_owned(), json!(job.trial))]);
            let of_trial = Named {
                pipeline: &trial,
                axes: axes.clone(),
            };
            let value = self.seeds.value(seed);
            axes.insert("seed".to_owned(), json!(value));
            axes.extend(job.resource.map(|resource| ("rung".to_owned(), json!(resource))));
            let names = [
                of_trial,
                Named {
                    pipeline: &variant,
                    axes,
                },
            ];
            let wanted = variant.of_stages(self.metrics.iter().map(|of| of.stage.as_str()));
            let indices = self.placed.place(&names, &wanted, false);
            left.extend(indices.values().copied().filter(|index| !self.over.contains_key(index)));
            let of_metrics = self.metrics.iter().enumerate().flat_map(|(m, of)| {
                let nodes = variant.of_stages([of.stage.as_str()]);
                nodes.into_iter().map(|i| (m, indices[&i])).collect::<Vec<_>>()
            });
            seeds.push(of_metrics.collect());
        }
        let own = (first..self.placed.next()).collect();
        self.running.insert(
            job.job,
            Running {
                job: job.clone(),
                left,
                seeds,
                own,
            },
        );
        Ok(())
    }

    /// The outcome of a job whose nodes have ended.
    fn outcome(&self, running: &Running) -> Result<Outcome, Failure> {
        let over = |node: &usize| self.over.get(node).cloned().unwrap_or_default();
        let seconds = running.own.iter().map(|node| over(node).seconds).sum();
        let nodes = || running.seeds.iter().flatten().map(|(_, node)| over(node));
        if let Some(error) = nodes().find_map(|over| over.error) {
            let first = running.own.iter().find_map(|node| over(node).error);
            let error = Some(first.unwrap_or(error));
            return Ok(Outcome {
                seconds,
                error,
                ..Outcome::default()
            });
        }
        self.values(&running.seeds, seconds)
    }

    /// The outcome of nodes that ended well: those of the metrics, for each seed.
    pub(super) fn values(&self, seeds: &[Vec<(usize, usize)>], seconds: f64) -> Result<Outcome, Failure> {
        let (mut objectives, mut constraints) = (Vec::new(), Vec::new());
        for of_seed in seeds {
            let mut values = Vec::with_capacity(self.metrics.len());
            for (m, of) in self.metrics.iter().enumerate() {
                let nodes = of_seed.iter().filter(|(of, _)| *of == m);
                let outputs = nodes.filter_map(|(_, node)| Some(&self.over.get(node)?.outputs));
                let all: Vec<f64> = outputs
                    .map(|outputs| self.metric(outputs.get("metrics").copied(), of))
                    .collect::<Result<_, _>>()?;
                values.push(all.iter().sum::<f64>() / all.len() as f64);
            }
            constraints.push(values.split_off(self.search.objective.0.len()));
            objectives.push(values);
        }
        if self.search.constraints.is_empty() {
            constraints.clear();
        }
        Ok(Outcome {
            objectives,
            constraints,
            seconds,
            error: None,
        })
    }

    fn metric(&self, metrics: Option<ArtifactDigest>, of: &MetricOf) -> Result<f64, Failure> {
        let none = || Failure::usage(format!("`{}` has no artifact of metrics", of.stage));
        let digest = metrics.ok_or_else(none)?;
        let values = figures::final_values(&self.setup.store, digest)?;
        values.get(&of.metric).copied().ok_or_else(|| {
            let known: Vec<&str> = values.keys().map(String::as_str).collect();
            Failure::usage(format!("`{}` has no metric `{}`", of.stage, of.metric)).hint(format!(
                "{}; it has {}",
                runner_pipeline::suggest(&of.metric, "metrics", known.iter().copied()),
                known.join(", ")
            ))
        })
    }

    /// Tells the study what came of a job, and writes it down.
    pub(super) fn tell(&mut self, job: &Job, outcome: Outcome, nodes: Vec<usize>, notes: &mut Vec<String>) {
        let same = |known: &Outcome| same(&known.objectives, &outcome.objectives);
        if !self.known.get(&job.job).is_some_and(same) {
            self.lines.push(Line::Ended {
                job: job.job,
                outcome: outcome.clone(),
            });
            notes.extend(self.note(job, &outcome));
        }
        if let Some(trial) = self.trials.get_mut(&job.trial)
            && let Some(means) = outcome.means(self.search.objective.0.len())
        {
            trial.value = means.first().copied();
            trial.nodes = nodes;
        }
        self.study.tell(job.job, outcome);
    }

    /// A line about a job that has ended.
    fn note(&self, job: &Job, outcome: &Outcome) -> Option<String> {
        let rung = match job.resource.filter(|_| job.rung + 1 < self.ladder.values.len()) {
            Some(resource) => format!(", rung {} of {} ({resource})", job.rung + 1, self.ladder.values.len()),
            None => String::new(),
        };
        let means = outcome.means(self.search.objective.0.len());
        let result = match (&outcome.error, means) {
            (Some(error), _) => format!("failed: {error}"),
            (None, Some(means)) => {
                let means = means.iter().map(|mean| format!("{mean:.4}"));
                means.collect::<Vec<_>>().join(", ")
            }
            (None, None) => "failed: its metric is no finite number".to_owned(),
        };
        Some(format!("trial {}{rung}: {result}", job.trial))
    }

    /// Decides all that can be decided, and places its nodes.
    pub(super) fn decide(&mut self, notes: &mut Vec<String>) -> Result<bool, Failure> {
        let stop_file = record::stop_file(&self.setup.home, &self.id);
        loop {
            let is_over =
                self.search.budget.wall.is_some_and(|wall| {
                    self.before + self.started.elapsed().as_secs_f64() >= wall.as_secs_f64()
                });
            let replayed = self.recorded.last().is_some_and(|job| self.study.replay(job.clone()));
            let next = match replayed {
                true => self.recorded.pop().map_or(Next::Wait, Next::Job),
                false if self.recorded.is_empty() && stop_file.exists() => {
                    self.finish.is_stopped = true;
                    return Ok(true);
                }
                false if is_over => return Ok(true),
                false => {
                    let next = self.study.next();
                    if let Next::Job(job) = &next {
                        // What was recorded from here on was decided by other results.
                        self.recorded.clear();
                        self.known.retain(|other, _| *other < job.job);
                        self.lines.push(Line::Decided(job.clone()));
                    }
                    next
                }
            };
            match next {
                Next::Job(job) => {
                    self.jobs += 1;
                    self.trials.entry(job.trial).or_insert_with(|| Trial {
                        settings: job.settings.clone(),
                        ..Trial::default()
                    });
                    let failed = self.known.get(&job.job).filter(|known| known.error.is_some());
                    if let Some(outcome) = failed.cloned() {
                        // What failed is in no cache, and is not tried again.
                        self.tell(&job, outcome, Vec::new(), notes);
                    } else if let Err(failure) = self.place(&job) {
                        let outcome = Outcome {
                            error: Some(failure.message),
                            ..Outcome::default()
                        };
                        self.tell(&job, outcome, Vec::new(), notes);
                    } else {
                        self.collect(notes)?;
                    }
                }
                Next::Wait => return Ok(false),
                Next::Done => return Ok(true),
                Next::Failed(message) => return Err(Failure::usage(message)),
            }
        }
    }

    /// Tells what came of the jobs whose nodes have all ended.
    pub(super) fn collect(&mut self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let over: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, running)| running.left.is_empty())
            .map(|(job, _)| *job)
            .collect();
        for job in over {
            if let Some(running) = self.running.remove(&job) {
                let outcome = self.outcome(&running)?;
                let of_first = |of_seed: &Vec<(usize, usize)>| {
                    let nodes = of_seed.iter().filter(|(m, _)| *m == 0);
                    nodes.map(|(_, node)| *node).collect::<Vec<_>>()
                };
                let nodes = running.seeds.iter().flat_map(of_first).collect();
                self.tell(&running.job, outcome, nodes, notes);
            }
        }
        Ok(())
    }
}

/// True if rows of numbers are the same; NaN is like NaN.
fn same(a: &[Vec<f64>], b: &[Vec<f64>]) -> bool {
    let bits = |rows: &[Vec<f64>]| -> Vec<Vec<u64>> {
        let bits = |value: &f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
        rows.iter().map(|row| row.iter().map(bits).collect()).collect()
    };
    bits(a) == bits(b)
}
