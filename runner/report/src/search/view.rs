//! Figures of a search, read off its record once for all that show it.

use super::scale::{in_a_line, short_names};
use runner_engine::text;
use runner_pipeline::Search;
use runner_search::importance::Importance;
use runner_search::record::{self, Record};
use runner_search::rungs::RungRow;
use runner_search::study::{Score, fronts};
use runner_search::trials::{Cost, TrialRow, TrialState};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

/// A search with what can be read off its record.
pub struct View {
    /// The record.
    pub record: Record,
    /// The trials, in the order of their numbers.
    pub trials: Vec<TrialRow>,
    /// The rungs, the last one included.
    pub rungs: Vec<RungRow>,
    /// The cost.
    pub cost: Cost,
    /// True if a process is searching.
    pub is_running: bool,
    /// The importance, which takes a forest of trees.
    importance: OnceCell<Option<Importance>>,
}

impl View {
    /// Reads the figures off a record of a home.
    pub fn new(home: &Path, record: Record) -> Self {
        Self {
            is_running: record::is_running(home, &record.header.id),
            ..Self::ended(record)
        }
    }

    /// Reads the figures off the record of a search that no process is writing.
    pub(super) fn ended(record: Record) -> Self {
        Self {
            trials: record.trials(),
            rungs: record.rank_correlations(),
            importance: OnceCell::new(),
            cost: record.steps_saved(),
            is_running: false,
            record,
        }
    }

    /// `running`, `done`, or `stopped` where the search ended or was killed before its end.
    pub fn state(&self) -> &'static str {
        match (self.is_running, self.record.is_done()) {
            (true, _) => "running",
            (_, true) => "done",
            _ => "stopped",
        }
    }

    /// The importance of the settings for the first objective; `None` of too few trials.
    pub fn importance(&self) -> Option<&Importance> {
        self.importance.get_or_init(|| self.record.importance(0)).as_ref()
    }

    /// The best trial; of several objectives, the Pareto front, the best in the first objective first.
    pub fn best(&self) -> Vec<&TrialRow> {
        let row = |trial: u32| self.trials.get(trial as usize);
        let first = self.record.best();
        let mut all: Vec<&TrialRow> = first.and_then(row).into_iter().collect();
        if self.record.header.search.objective.0.len() > 1 {
            let others = self
                .record
                .pareto_front()
                .into_iter()
                .filter(|trial| Some(*trial) != first);
            all.extend(others.filter_map(row));
        }
        all
    }

    /// The trials with a result, the best first: those at a higher rung before all at a lower one.
    pub fn ranked(&self) -> Vec<&TrialRow> {
        let mut by_rung: BTreeMap<usize, Vec<&TrialRow>> = BTreeMap::new();
        for row in &self.trials {
            if let Some(result) = row.sound() {
                by_rung.entry(result.rung).or_default().push(row);
            }
        }
        by_rung.into_values().rev().flat_map(in_order).collect()
    }

    /// `maximize evaluate.utility`, for each objective.
    pub fn objectives(&self) -> Vec<String> {
        let search = &self.record.header.search;
        let objectives = search.objective.0.iter().zip(metrics(search));
        objectives
            .map(|(objective, metric)| match objective.maximize {
                true => format!("maximize {metric}"),
                false => format!("minimize {metric}"),
            })
            .collect()
    }

    /// A short name for each setting, by its full one.
    pub fn short_names(&self) -> BTreeMap<&str, &str> {
        short_names(self.record.header.search.over.keys())
    }

    /// The settings, the most important first.
    pub fn settings(&self) -> Vec<&str> {
        match self.importance() {
            Some(importance) => importance.settings.iter().map(|(name, _)| name.as_str()).collect(),
            None => self.record.header.search.over.keys().map(String::as_str).collect(),
        }
    }

    /// `64 trials: 12 done, 40 pruned`.
    pub fn counts(&self) -> String {
        let mut counts: BTreeMap<TrialState, usize> = BTreeMap::new();
        for row in &self.trials {
            *counts.entry(row.state).or_default() += 1;
        }
        let parts: Vec<String> = counts
            .iter()
            .map(|(state, n)| format!("{n} {}", state.name()))
            .collect();
        let wanted = self.record.header.search.trials() as usize;
        let of = match self.trials.len() {
            n if n < wanted => format!("{n} of {}", text::count(wanted, "trial")),
            n => text::count(n, "trial"),
        };
        match parts.as_slice() {
            [] => of,
            parts => format!("{of}: {}", parts.join(", ")),
        }
    }

    /// The objective of a trial at its last rung: `0.0312`, of several objectives with commas.
    pub fn objective(row: &TrialRow) -> String {
        row.sound().map_or(String::new(), |result| figures(&result.objectives))
    }

    /// A rung's name: the value of its resource.
    pub fn rung(&self, rung: usize) -> String {
        let resource = self.record.header.rungs.get(rung).copied().flatten();
        resource.map_or_else(|| rung.to_string(), short_count)
    }

    /// The number of jobs that are decided and have not ended.
    pub fn under_way(&self) -> usize {
        self.record.jobs.len().saturating_sub(self.record.outcomes.len())
    }

    /// The state of a search that goes on, as JSON.
    pub fn progress_json(&self) -> Value {
        json!({
            "id": self.record.header.id,
            "trials": self.trials.len(),
            "of": self.record.header.search.trials(),
            "jobs_under_way": self.under_way(),
            "best": self.best().first().map(|row| json!({
                "trial": row.trial,
                "objectives": row.sound().map(|result| &result.objectives),
            })),
        })
    }

    /// A line on a search that goes on: trials, the best, jobs under way.
    pub fn progress(&self) -> String {
        let best = self
            .best()
            .first()
            .map(|row| format!("; best {} (trial {})", Self::objective(row), row.trial));
        format!(
            "search {}, {}; {} under way{}",
            self.record.header.id,
            self.counts(),
            text::count(self.under_way(), "job"),
            best.unwrap_or_default()
        )
    }

    /// Lines on the search as a whole: a name and a text.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let header = &self.record.header;
        let mut facts = vec![("trials", self.counts())];
        let short = self.short_names();
        if let [best, others @ ..] = self.best().as_slice() {
            let also = match others.len() {
                0 => String::new(),
                n => format!(", and {} of the Pareto front", text::count(n, "other")),
            };
            let at = best.sound().map_or(String::new(), |result| match self.rungs.len() {
                1 => String::new(),
                _ => format!(" at {}", self.rung(result.rung)),
            });
            facts.push((
                "best",
                format!("trial {}, {}{at}{also}", best.trial, Self::objective(best)),
            ));
            facts.push(("settings", in_a_line(&best.settings, &short)));
        }
        if let Some(last) = &self.record.last {
            let n = header.search.objective.0.len();
            let means = last.outcome.means(n);
            let shown = means.map_or("failed".to_owned(), |means| figures(&means));
            let seeds: Vec<String> = last.seeds.iter().map(u64::to_string).collect();
            let what = if seeds.len() == 1 { "seed" } else { "seeds" };
            facts.push((
                "fresh seeds",
                format!("{shown} (trial {}, {what} {})", last.trial, seeds.join(", ")),
            ));
        }
        if let Some(importance) = self.importance() {
            let mut shares: Vec<String> = importance
                .settings
                .iter()
                .take(6)
                .map(|(name, share)| {
                    let name = short.get(name.as_str()).copied().unwrap_or(name);
                    format!("{name} {:.0} %", share * 100.0)
                })
                .collect();
            shares.push(format!("several together {:.0} %", importance.interactions * 100.0));
            facts.push(("importance", shares.join(", ")));
        }
        if self.cost.full > 0 && header.search.rungs().is_some() {
            let unit = header.search.rungs().map_or("", |rungs| rungs.resource.as_str());
            let share = 100.0 * self.cost.computed as f64 / self.cost.full as f64;
            facts.push((
                "cost",
                format!(
                    "{} of the {} {} that all trials take to their end: {share:.0} %",
                    short_count(self.cost.computed),
                    short_count(self.cost.full),
                    unit.rsplit('.').next().unwrap_or(unit),
                ),
            ));
        }
        let times = self.seconds_by_rung();
        let all: f64 = times.iter().sum();
        if all > 0.0 {
            let mut shown = text::duration(all) + " of stages";
            if times.len() > 1 {
                let part = |(rung, seconds): (usize, &f64)| {
                    format!("{} {:.0} %", self.rung(rung), 100.0 * seconds / all)
                };
                shown += &format!(
                    ": {}",
                    times.iter().enumerate().map(part).collect::<Vec<_>>().join(", ")
                );
            }
            let lost: f64 = self
                .trials
                .iter()
                .flat_map(|row| &row.results)
                .filter(|result| result.score.is_failed())
                .map(|result| result.seconds)
                .sum();
            if lost > 0.0 {
                shown += &format!("; {} of what failed", text::duration(lost));
            }
            facts.push(("time", shown));
        }
        facts
    }

    /// The time of the stages of each rung.
    fn seconds_by_rung(&self) -> Vec<f64> {
        let mut seconds = vec![0.0; self.rungs.len()];
        for result in self.trials.iter().flat_map(|row| &row.results) {
            if let Some(sum) = seconds.get_mut(result.rung) {
                *sum += result.seconds;
            }
        }
        seconds
    }

    /// The search as JSON: the document of `runner search show --json`.
    pub fn json(&self) -> Value {
        let header = &self.record.header;
        let one = |values: &[f64]| match values {
            [] => Value::Null,
            [value] => json!(value),
            several => json!(several),
        };
        let trials: Vec<Value> = self
            .trials
            .iter()
            .map(|row| {
                let mut value = json!(row);
                value["objective"] = one(row.sound().map_or(&[], |result| &result.objectives));
                value["error"] = json!(row.results.last().and_then(|result| result.error.as_ref()));
                value
            })
            .collect();
        let objectives: Vec<Value> = header
            .search
            .objective
            .0
            .iter()
            .map(|objective| json!({ "metric": objective.metric, "maximize": objective.maximize }))
            .collect();
        let runs: Vec<&record::Ran> = self.record.runs.iter().map(|(ran, _)| ran).collect();
        json!({
            "id": header.id,
            "pipeline": header.pipeline,
            "file": header.file,
            "state": self.state(),
            "objectives": objectives,
            "search": header.search,
            "best": self.best().iter().map(|row| row.trial).collect::<Vec<_>>(),
            "trials": trials,
            "rungs": self.rungs,
            "importance": self.importance().map(|importance| json!({
                "settings": importance.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
                "interactions": importance.interactions,
                "rung": importance.rung,
                "trials": importance.trials,
            })),
            "cost": self.cost,
            "final": self.record.last,
            "runs": runs,
        })
    }
}

/// Trials with a result at the same rung, the best first.
fn in_order(rows: Vec<&TrialRow>) -> Vec<&TrialRow> {
    let scores: Vec<&Score> = rows.iter().filter_map(|row| Some(&row.sound()?.score)).collect();
    let mut numbered: Vec<(usize, &TrialRow)> = fronts(&scores).into_iter().zip(rows).collect();
    numbered.sort_by_key(|(front, row)| (*front, row.trial));
    numbered.into_iter().map(|(_, row)| row).collect()
}

/// The metrics that decide.
pub(super) fn metrics(search: &Search) -> Vec<String> {
    let objectives = search.objective.0.iter();
    objectives
        .map(|objective| String::from(objective.metric.clone()))
        .collect()
}

/// Objectives as text.
fn figures(values: &[f64]) -> String {
    values
        .iter()
        .map(|value| text::figure(*value))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A count of steps: 12k, 1.5M.
fn short_count(n: u64) -> String {
    crate::chart::number(n as f64)
}
