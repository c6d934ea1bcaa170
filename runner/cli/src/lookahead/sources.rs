//! The sources of a pipeline: the outputs of its first stages, and the files that external programs read.

use super::overlay::{Made, Overlay};
use super::perturb;
use super::report::Unchecked;
use super::table::{self, Form};
use cache::{ArtifactBuilder, ArtifactDigest, Store};
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::{Pipeline, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source.
pub struct Source {
    /// `market.bars`, or `smooth: prices.csv`.
    pub name: String,
    node: usize,
    what: What,
}

enum What {
    /// An output of a stage without inputs.
    Output { name: String, digest: ArtifactDigest },
    /// A file that an external program reads, by its index.
    File { place: usize, path: PathBuf },
}

/// A source with perturbed values.
pub struct Changed {
    /// The number of changed rows.
    pub changed: u64,
    /// The replacement of its output.
    pub artifact: Option<ArtifactDigest>,
    /// The replacement of its file.
    pub file: Option<PathBuf>,
}

/// The sources of some stages, and their other external inputs, which cannot be perturbed.
pub fn find(
    pipeline: &Pipeline,
    chosen: &[usize],
    made: &BTreeMap<usize, Made>,
    store: &Store,
) -> Result<(Vec<Source>, Vec<Unchecked>), Failure> {
    let (mut sources, mut fixed) = (Vec::new(), Vec::new());
    for &i in chosen {
        let node = &pipeline.nodes[i];
        let mut by_file = false;
        if let Work::Command(command) = &node.work {
            for (place, file) in command.files.iter().enumerate() {
                if matches!(Form::of(&file.name), Some(Form::Parquet | Form::Arrow)) {
                    fixed.push(Unchecked {
                        source: format!("{}: {}", node.id, file.name),
                        stage: String::new(),
                        what: String::new(),
                        reason: "only text files of external programs can be perturbed".to_owned(),
                    });
                } else if has_dates(&file.path)? {
                    by_file = true;
                    sources.push(Source {
                        name: format!("{}: {}", node.id, file.name),
                        node: i,
                        what: What::File {
                            place,
                            path: file.path.clone(),
                        },
                    });
                }
            }
        }
        for (port, earlier) in &node.earlier {
            fixed.extend(earlier.iter().map(|earlier| Unchecked {
                source: earlier.name.clone(),
                stage: node.id.clone(),
                what: port.clone(),
                reason: "artifacts of earlier runs are not perturbed".to_owned(),
            }));
        }
        // The outputs of a program with a perturbed file are compared, and not perturbed themselves.
        if !node.needs.is_empty() || by_file {
            continue;
        }
        let Some((_, outputs)) = made.get(&i) else {
            continue;
        };
        for (name, &digest) in outputs {
            let source = Source {
                name: format!("{}.{name}", node.id),
                node: i,
                what: What::Output {
                    name: name.clone(),
                    digest,
                },
            };
            let artifact = store.artifact(digest)?;
            if artifact.entries.iter().any(|entry| Form::of(&entry.path).is_some()) {
                sources.push(source);
            } else {
                fixed.push(source.unperturbed("holds no table"));
            }
        }
    }
    Ok((sources, fixed))
}

/// True if a file is a text table with dates.
fn has_dates(path: &Path) -> Result<bool, Failure> {
    let Some(Form::Text(separator)) = Form::of(&path.to_string_lossy()) else {
        return Ok(false);
    };
    let bytes = read(path)?;
    Ok(table::of_text(&bytes, separator).is_some_and(|text| text.table().dates.is_some()))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|err| Failure::caused(format!("cannot read `{}`", path.display()), &err))
}

impl Source {
    /// The finding that it was not perturbed.
    pub fn unperturbed(&self, reason: &str) -> Unchecked {
        Unchecked {
            source: self.name.clone(),
            stage: String::new(),
            what: String::new(),
            reason: reason.to_owned(),
        }
    }

    /// True if it is this output.
    pub fn is(&self, node: usize, output: &str) -> bool {
        self.node == node && matches!(&self.what, What::Output { name, .. } if name == output)
    }

    /// The nodes that depend on it.
    pub fn affected(&self, pipeline: &Pipeline, chosen: &[usize]) -> BTreeSet<usize> {
        let mut affected = BTreeSet::new();
        for &i in chosen {
            let itself = self.node == i && matches!(self.what, What::File { .. });
            let mut needs = pipeline.nodes[i].needs.values().flatten();
            if itself || needs.any(|need| affected.contains(&need.node) || self.is(need.node, &need.output)) {
                affected.insert(i);
            }
        }
        affected
    }

    /// Replaces its file and returns the path of the previous one.
    pub fn swap(&self, pipeline: &mut Pipeline, file: PathBuf) -> PathBuf {
        match (&self.what, &mut pipeline.nodes[self.node].work) {
            (What::File { place, .. }, Work::Command(command)) => {
                std::mem::replace(&mut Arc::make_mut(command).files[*place].path, file)
            }
            _ => file,
        }
    }

    /// Its dates.
    fn dates(&self, store: &Store) -> Result<BTreeSet<Date>, Failure> {
        let mut dates = BTreeSet::new();
        match &self.what {
            What::Output { digest, .. } => {
                for entry in &store.artifact(*digest)?.entries {
                    if let Some(table) = table::read(store, entry)? {
                        dates.extend(table.dates.into_iter().flatten());
                    }
                }
            }
            What::File { path, .. } => {
                if let Some(Form::Text(separator)) = Form::of(&path.to_string_lossy())
                    && let Some(text) = table::of_text(&read(path)?, separator)
                {
                    dates.extend(text.table().dates.into_iter().flatten());
                }
            }
        }
        Ok(dates)
    }

    /// A copy with perturbed values after `at`; `None` if it has none there.
    pub fn perturb(&self, overlay: &Overlay<'_>, at: Date) -> Result<Option<Changed>, Failure> {
        let store = &overlay.store;
        match &self.what {
            What::Output { digest, .. } => {
                let artifact = overlay.base().artifact(*digest)?;
                let mut builder = ArtifactBuilder::new(store, &artifact.kind, artifact.meta.clone());
                let mut changed = 0;
                for entry in &artifact.entries {
                    match other(overlay.base(), entry, at)? {
                        Some((rows, bytes)) => {
                            changed += rows;
                            builder.bytes(&entry.path, &bytes)?;
                        }
                        None => {
                            overlay.blob(entry.blob_ref())?;
                            builder.blob(&entry.path, entry.blob_ref());
                        }
                    }
                }
                Ok((changed > 0).then_some(Changed {
                    changed,
                    artifact: Some(builder.finish()?),
                    file: None,
                }))
            }
            What::File { path, .. } => {
                let Some(Form::Text(separator)) = Form::of(&path.to_string_lossy()) else {
                    return Ok(None);
                };
                let text = table::of_text(&read(path)?, separator);
                let Some((changed, text)) = text.and_then(|text| text.change(at, perturb::value)) else {
                    return Ok(None);
                };
                let file = overlay.folder().join("file");
                std::fs::write(&file, text).map_err(|err| Failure::caused("cannot write a changed file", &err))?;
                Ok(Some(Changed {
                    changed,
                    artifact: None,
                    file: Some(file),
                }))
            }
        }
    }
}

/// A file with perturbed values after `at`; `None` if it has none there.
fn other(store: &Store, entry: &cache::Entry, at: Date) -> Result<Option<(u64, Vec<u8>)>, Failure> {
    match Form::of(&entry.path) {
        Some(Form::Text(separator)) => {
            let text = table::of_text(&store.blob(entry.blob)?, separator);
            let changed = text.and_then(|text| text.change(at, perturb::value));
            Ok(changed.map(|(rows, text)| (rows, text.into_bytes())))
        }
        Some(Form::Parquet) => {
            let Some(table) = table::read(store, entry)? else {
                return Ok(None);
            };
            let Some(dates) = &table.dates else { return Ok(None) };
            let Some((rows, batch)) = perturb::batch(&table.batch, dates, at)? else {
                return Ok(None);
            };
            Ok(Some((rows, stages_core::table::to_parquet(&batch)?)))
        }
        _ => Ok(None),
    }
}

fn dates(sources: &[Source], store: &Store) -> Result<BTreeSet<Date>, Failure> {
    let mut dates = BTreeSet::new();
    for source in sources {
        dates.extend(source.dates(store)?);
    }
    Ok(dates)
}

/// The first and the last date of all sources.
pub fn span(sources: &[Source], store: &Store) -> Result<Option<(Date, Date)>, Failure> {
    let dates = dates(sources, store)?;
    Ok(dates.first().copied().zip(dates.last().copied()))
}

/// The last date of a month near the middle of the time range that all sources share, so that whole partitions precede it; near the middle of
/// all dates if there is no such range.
pub fn middle(sources: &[Source], store: &Store) -> Result<Option<Date>, Failure> {
    let mut all = BTreeSet::new();
    let (mut first, mut last) = (Date(i32::MIN), Date(i32::MAX));
    for source in sources {
        let dates = source.dates(store)?;
        if let (Some(&from), Some(&to)) = (dates.iter().min(), dates.iter().max()) {
            (first, last) = (first.max(from), last.min(to));
        }
        all.extend(dates);
    }
    let shared: Vec<Date> = all
        .iter()
        .copied()
        .filter(|date| (first..=last).contains(date))
        .collect();
    let dates = if shared.len() > 1 {
        shared
    } else {
        all.into_iter().collect()
    };
    let Some(middle) = dates.len().checked_sub(1).map(|last| last / 2) else {
        return Ok(None);
    };
    let ends_month = |i: usize| dates.get(i + 1).is_some_and(|next| next.ymd().1 != dates[i].ymd().1);
    let best = (0..dates.len())
        .filter(|&i| ends_month(i))
        .min_by_key(|&i| i.abs_diff(middle));
    Ok(Some(dates[best.unwrap_or(middle)]))
}
