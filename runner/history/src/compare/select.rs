//! Resolves the arguments of a comparison: `RUN`, `RUN[seed=1]`, `RUN/STAGE`, `RUN/STAGE[seed=1]`.

use super::point::{Point, Reader};
use crate::{AllMarks, Run, StageRun};
use cache::Store;
use runner_engine::Failure;
use runner_pipeline::{Select, suggest};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Resolves names to points, each point once, in the order of the names. `runs` is the directory of all runs.
pub fn select(runs: &Path, store: &Store, names: &[String]) -> Result<Vec<Point>, Failure> {
    let marks = AllMarks::read(runs)?;
    let wanted: Vec<Wanted<'_>> = names.iter().map(|name| Wanted::read(name)).collect::<Result<_, _>>()?;
    // If the names select several stages, prefixes keep their metrics apart.
    let stages: Vec<Option<&str>> = wanted.iter().map(|wanted| wanted.stage).collect();
    let bare = stages.iter().all(Option::is_some) && stages.iter().any(|stage| *stage != stages[0]);
    let mut loaded: BTreeMap<String, Run> = BTreeMap::new();
    let mut ids = Vec::new();
    for wanted in &wanted {
        let id = crate::resolve(runs, wanted.run)?;
        if !loaded.contains_key(&id) {
            loaded.insert(id.clone(), crate::load(runs, &id)?);
        }
        ids.push(id);
    }
    let mut readers: BTreeMap<&str, Reader<'_>> = BTreeMap::new();
    let (mut points, mut known): (Vec<Point>, HashSet<String>) = Default::default();
    for (wanted, id) in wanted.iter().zip(&ids) {
        let Some(run) = loaded.get(id) else { continue };
        let called = marks.of.get(id).and_then(|marks| marks.name.as_deref()).unwrap_or(id);
        let reader = readers.entry(id).or_insert_with(|| Reader::new(run, called, store));
        for point in wanted.points(run, reader, bare)? {
            if known.insert(point.id()) {
                points.push(point);
            }
        }
    }
    Ok(points)
}

struct Wanted<'n> {
    run: &'n str,
    stage: Option<&'n str>,
    points: Select,
}

impl<'n> Wanted<'n> {
    fn read(name: &'n str) -> Result<Self, Failure> {
        let (front, point) = match name.split_once('[') {
            Some((front, point)) => (front, Some(point)),
            None => (name, None),
        };
        let (run, stage) = match front.split_once('/') {
            Some((run, stage)) => (run, Some(stage)),
            None => (front, None),
        };
        let wrong = || {
            Failure::usage(format!("`{name}` is neither a run nor a point of a run")).hint(
                "write RUN, RUN/STAGE, `RUN[seed=1]` or `RUN/STAGE[seed=1]`; `runner runs` lists the runs",
            )
        };
        let points = match point.map(|point| point.strip_suffix(']')) {
            None => Select::default(),
            Some(inside) => Select::parse(inside.ok_or_else(wrong)?).map_err(|_| wrong())?,
        };
        if run.is_empty() || stage.is_some_and(str::is_empty) {
            return Err(wrong());
        }
        Ok(Self { run, stage, points })
    }

    fn points<'r>(&self, run: &'r Run, reader: &mut Reader<'r>, bare: bool) -> Result<Vec<Point>, Failure> {
        let Some(name) = self.stage else {
            let all = reader.all();
            let known: Vec<String> = all.iter().map(|point| format!("{}{}", self.run, point.place)).collect();
            let axes = |point: &Point| -> BTreeMap<String, Value> {
                let axis = |(name, value): (&String, &Value)| {
                    Some((name.strip_prefix("matrix.")?.to_owned(), value.clone()))
                };
                point.parameters.iter().filter_map(axis).collect()
            };
            let found: Vec<Point> = all.into_iter().filter(|point| self.points.has(&axes(point))).collect();
            return match found.is_empty() {
                true => Err(no_point(&format!("run {}", run.id), &known)),
                false => Ok(found),
            };
        };
        let named: Vec<&'r StageRun> = run.stages.iter().filter(|stage| stage.stage == name).collect();
        if named.is_empty() {
            let known: std::collections::BTreeSet<&str> =
                run.stages.iter().map(|stage| stage.stage.as_str()).collect();
            return Err(Failure::usage(format!("run {} has no stage `{name}`", run.id))
                .hint(suggest(name, "stages", known)));
        }
        let found: Vec<&'r StageRun> = named
            .iter()
            .copied()
            .filter(|stage| self.points.has(&stage.point))
            .collect();
        if found.is_empty() {
            let known: Vec<String> = named.iter().map(|stage| stage.id.clone()).collect();
            return Err(no_point(&format!("`{name}` of run {}", run.id), &known));
        }
        Ok(found.into_iter().map(|stage| reader.stage(stage, bare)).collect())
    }
}

fn no_point(of: &str, known: &[String]) -> Failure {
    Failure::usage(format!("{of} has no such point")).hint(format!(
        "its points are {}",
        runner_engine::text::some(known.iter().map(String::as_str), 8)
    ))
}
