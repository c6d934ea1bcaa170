//! The plan of a check: the sources that it changes, the dates, and the stages that it runs and compares.

use super::change::Change;
use super::change::Version;
use super::dates::{self, Confidence, Cut};
use super::document;
use super::environment;
use super::moment::Stamp;
use super::outputs::Reader;
use super::replace::Replaced;
use super::settings::Settings;
use super::sources::{self, Found};
use super::table::Table;
use cache::Store;
use datasets::Date;
use runner_engine::{Collected, Failure};
use runner_pipeline::{Pipeline, Work};
use stages_core::PortType;
use stages_core::typed_output::FileType;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum size of a program that is searched for dates, in bytes.
const SEARCHED: u64 = 1 << 20;

/// The plan of a check.
pub(crate) struct Plan<'a> {
    pub pipeline: &'a Pipeline,
    pub store: &'a Store,
    /// The run on the original data.
    pub base: Collected,
    pub file_types: &'static [FileType],
    pub found: Found,
    pub cuts: Vec<Cut>,
    pub confidence: Confidence,
    /// The nodes that run again, in topological order.
    pub affected: BTreeSet<usize>,
    /// The nodes that do not run again, but whose outputs other nodes need.
    pub lent: BTreeSet<usize>,
    pub replaced: Replaced,
    /// The dates of the rows of inputs and siblings, by node, for tables without dates.
    pub aligned: BTreeMap<usize, Vec<Vec<Stamp>>>,
    pub except: Vec<String>,
    pub reader: Reader,
    /// The dates that programs name, by node: a training range may end there.
    pub named: BTreeMap<usize, BTreeSet<Date>>,
}

fn family(pipeline: &Pipeline, node: usize) -> Option<&str> {
    match &pipeline.nodes[node].work {
        Work::Kind { kind, .. } => kind.name().split('/').next(),
        Work::Command(_) => None,
    }
}

/// True for stages that train: their results depend on all training dates, and they run once.
pub(crate) fn trains(pipeline: &Pipeline, node: usize) -> bool {
    family(pipeline, node) == Some("train")
}

/// True for stages that run a policy over the test dates.
pub(crate) fn evaluates(pipeline: &Pipeline, node: usize) -> bool {
    family(pipeline, node) == Some("evaluate")
}

/// True for environments that a program steps: their observations are computed while they are stepped, and
/// are not tables.
pub(crate) fn is_stepped_by_program(pipeline: &Pipeline, node: usize) -> bool {
    matches!(&pipeline.nodes[node].work, Work::Kind { kind, .. } if kind.name() == "env/python")
}

/// True for figures of the whole period: the metrics of an evaluation, and metrics written by a program.
pub(crate) fn is_metrics(pipeline: &Pipeline, node: usize, output: &str) -> bool {
    match &pipeline.nodes[node].work {
        Work::Command(command) => command.types.get(output) == Some(&PortType::Metrics),
        Work::Kind { .. } => evaluates(pipeline, node) && output == "metrics",
    }
}

/// Removes training stages whose results no other chosen stage needs.
pub(crate) fn without_needless_training(pipeline: &Pipeline, chosen: &[usize]) -> Vec<usize> {
    let mut needed = BTreeSet::new();
    let mut left: Vec<usize> = Vec::new();
    for &i in chosen.iter().rev() {
        if trains(pipeline, i) && !needed.contains(&i) {
            continue;
        }
        needed.extend(pipeline.nodes[i].needs.values().flatten().map(|need| need.node));
        left.push(i);
    }
    left.reverse();
    left
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        pipeline: &'a Pipeline,
        chosen: &[usize],
        store: &'a Store,
        file_types: &'static [FileType],
        base: Collected,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let found = sources::find(pipeline, chosen, &base.made, store)?;
        let mut affected: BTreeSet<usize> = BTreeSet::new();
        for &i in chosen {
            let reads = |source: &sources::Source| source.node == i && source.is_input();
            let mut needs = pipeline.nodes[i].needs.values().flatten();
            let reached = needs.any(|need| {
                affected.contains(&need.node)
                    || found.sources.iter().any(|source| source.is(need.node, &need.output))
            });
            if !trains(pipeline, i) && (reached || found.sources.iter().any(reads)) {
                affected.insert(i);
            }
        }
        let pinned: BTreeSet<usize> = chosen.iter().copied().filter(|&i| trains(pipeline, i)).collect();
        let lent = chosen
            .iter()
            .copied()
            .filter(|i| !affected.contains(i) && !pinned.contains(i))
            .collect();
        let mut ranges = BTreeMap::new();
        let mut also: Vec<(Date, &'static str)> = Vec::new();
        for &i in &affected {
            let Work::Kind { kind, .. } = &pipeline.nodes[i].work else {
                continue;
            };
            let env = base.made.get(&i).and_then(|(_, outputs)| outputs.get("env"));
            if environment::KINDS.contains(&kind.name())
                && let Some(digest) = env
                && let Some(found) = environment::ranges(store, &store.artifact(*digest)?)
            {
                also.extend(found.train.map(|(_, last)| (last, "training ends")));
                let middle = |(first, last): (Date, Date)| Date((first.0 + last.0) / 2);
                also.extend(found.test.map(|test| (middle(test), "within the test dates")));
                ranges.insert(i, found);
            }
        }
        let named: BTreeMap<usize, BTreeSet<Date>> =
            chosen.iter().map(|&i| (i, named(pipeline, i))).collect();
        let all_named = named.values().flatten().copied().collect();
        let (cuts, confidence) = match settings.at.as_slice() {
            [] => dates::choose(&found.sources, &all_named, &also, settings.wanted),
            given => given_cuts(&found, given)?,
        };
        let mut plan = Self {
            pipeline,
            store,
            base,
            file_types,
            found,
            cuts,
            confidence,
            affected,
            lent,
            replaced: Replaced { pinned, ranges },
            aligned: BTreeMap::new(),
            except: settings.except.clone(),
            reader: Reader::default(),
            named,
        };
        for &node in &plan.affected {
            if plan.has_undated(node)? {
                let aligned = plan.alignments(node)?;
                plan.aligned.insert(node, aligned);
            }
        }
        Ok(plan)
    }

    /// True if a table of a node has no dates.
    fn has_undated(&self, node: usize) -> Result<bool, Failure> {
        for (_, digest) in self.base.outputs(node) {
            let tables = self.reader.kept(self.store, digest)?;
            let is_undated = |table: &Table| table.stamps.is_none() && table.batch.num_rows() > 0;
            if tables
                .iter()
                .any(|output| output.table.as_ref().is_ok_and(|table| is_undated(table)))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The dates of rows of the inputs of a node, and of its own tables that have dates.
    fn alignments(&self, node: usize) -> Result<Vec<Vec<Stamp>>, Failure> {
        let mut all: BTreeSet<Vec<Stamp>> = self
            .found
            .sources
            .iter()
            .flat_map(|source| source.scan.rows.iter().cloned())
            .collect();
        let needs = self.pipeline.nodes[node].needs.values().flatten().map(|need| need.node);
        for i in needs.chain([node]) {
            for (_, digest) in self.base.outputs(i) {
                for output in self.reader.kept(self.store, digest)?.iter() {
                    let stamps = output.table.as_ref().ok().and_then(|table| table.stamps.clone());
                    all.extend(stamps);
                }
            }
        }
        let distinct = |stamps: &Vec<Stamp>| {
            stamps
                .iter()
                .copied()
                .collect::<BTreeSet<Stamp>>()
                .into_iter()
                .collect()
        };
        let dates: Vec<Vec<Stamp>> = all.iter().map(distinct).collect();
        all.extend(dates);
        Ok(all.into_iter().collect())
    }

    /// The versions of the data to test, in order: at each date, truncated data, and data perturbed in one of
    /// two manners, or in both if the user gave the dates.
    pub(crate) fn versions(&self) -> Vec<Version> {
        let few = self.cuts.len() <= 2;
        let mut versions = Vec::new();
        for cut in 0..self.cuts.len() {
            let mut add = |change| versions.push(Version { cut, change });
            add(Change::Truncated);
            if few || cut % 2 == 0 {
                add(Change::OtherValues);
            }
            if few || cut % 2 == 1 {
                add(Change::OtherRows);
            }
        }
        versions
    }

    /// True if the cut with the index `cut` is not before `date`, so that all data up to `date` stays
    /// unchanged.
    pub(crate) fn is_after(&self, cut: usize, date: Date) -> bool {
        let until = self.cuts[cut].until;
        let end = Stamp::day(date).end;
        let stamps = self.found.sources.iter().flat_map(|source| &source.scan.stamps);
        stamps.filter(|stamp| stamp.end <= end).all(|stamp| stamp.end <= until)
    }

    /// True if the user excluded an output from the comparison.
    pub(crate) fn is_excepted(&self, node: usize, output: &str) -> bool {
        let node = &self.pipeline.nodes[node];
        self.except.iter().any(|except| {
            *except == node.id || *except == node.stage || *except == format!("{}.{output}", node.stage)
        })
    }

    /// The total duration of the checked stages when they were computed, in seconds.
    pub(crate) fn run_seconds(&self) -> Result<f64, Failure> {
        let mut seconds = 0.0;
        for i in &self.affected {
            if let Some((key, _)) = self.base.made.get(i) {
                seconds += self.store.recorded(*key)?.map_or(0.0, |record| record.seconds);
            }
        }
        Ok(seconds)
    }
}

fn given_cuts(found: &Found, given: &[Date]) -> Result<(Vec<Cut>, Confidence), Failure> {
    let mut cuts = Vec::new();
    for &date in given {
        cuts.push(dates::cut_at(&found.sources, date).ok_or_else(|| {
            Failure::usage(format!("no source has values both up to {date} and after it")).hint(
                match dates::span(&found.sources) {
                    Some((first, last)) => {
                        format!(
                            "the sources have dates from {first} to {last}: choose one between with `--at`"
                        )
                    }
                    None => "the sources have no dates".to_owned(),
                },
            )
        })?);
    }
    let confidence = Confidence {
        dates: 0,
        tested: cuts.len(),
        drawn: 0,
        share: 0.0,
        found: 0.0,
    };
    Ok((cuts, confidence))
}

/// The dates that a stage's program or configuration names.
fn named(pipeline: &Pipeline, node: usize) -> BTreeSet<Date> {
    let mut texts = Vec::new();
    match &pipeline.nodes[node].work {
        Work::Kind { config, .. } => texts.push(config.to_string()),
        Work::Command(command) => {
            texts.push(command.command.clone());
            texts.extend(
                command
                    .python
                    .iter()
                    .flat_map(|python| python.with.values().map(ToString::to_string)),
            );
            texts.extend(command.env.values().cloned());
            let programs = command
                .files
                .iter()
                .filter(|file| document::is_program(&file.path.to_string_lossy()));
            let small = programs
                .filter(|file| std::fs::metadata(&file.path).is_ok_and(|meta| meta.len() <= SEARCHED));
            texts.extend(small.filter_map(|file| std::fs::read_to_string(&file.path).ok()));
        }
    }
    dates::named(texts.into_iter())
}
