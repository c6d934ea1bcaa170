//! The memo of a resolved pipeline: the result for its files and settings, so that an unchanged pipeline is
//! not parsed again.
//!
//! | input of a pipeline | validation of the memo |
//! | --- | --- |
//! | the file's path, `--set`, `--profile`, `--night`, the program | they form the memo's name |
//! | the contents of the file and of its included files | their digests are compared |
//! | environment variables that are interpolated | the digests of their values are compared |
//! | `files:` of `run:` stages | the patterns are expanded again, and the files are compared |
//! | `tools:` of `run:` stages | they are looked for again |
//! | files that a stage kind reads | the kind looks for them and checks its configuration again; the result is compared |
//! | artifacts of earlier runs, and registered policies | a pipeline that refers to one, registers or promotes one, or counts them, has no memo |
//! | the environment, for messages | a pipeline with `notify:` or `track:` has no memo |
//! | modules and packages of `uses: python` stages | a pipeline that has one has no memo |
//!
//! The caller stores a checksum with each memo. Malformed bytes are rejected nevertheless.

use crate::PipelineErrors;
use crate::file::encoding::{Reader, Writer};
use crate::file::load::{self, LoadOptions, Recorded};
use crate::model::{InputRef, Node, Pipeline, Resources, Work, graph_of};
use crate::stage::command::{Command, Isolation, Shell, Tool};
use crate::stage::files::{self, Pattern};
use crate::stage::run_stage::Reads;
use crate::stage::tools::in_order;
use crate::stage::tools::{Finder, Request};
use crate::text::place::Place;
use crate::text::problems::Problems;
use crate::text::source::{self, Texts};
use cache::{BlobDigest, BlobRef};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as Unknown, StrDeserializer};
use stages_core::{PlanContext, Provided, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The name of a pipeline's memo: all inputs of loading, except those whose digests are in the memo.
/// `program` identifies the build of the program.
pub fn memo_name(file: &Path, options: &LoadOptions, program: &str) -> Vec<u8> {
    let mut out = Writer::default();
    out.text("runner 2026-11 resolved pipeline v5");
    out.text(program);
    out.path(file);
    out.path(&load::folder_of(file));
    out.list(&options.set, |out, text| out.text(text));
    out.list(&options.profiles, |out, text| out.text(text));
    let night = options.night.map(|night| format!("{} {}", night.date, night.previous));
    out.option_text(night.as_deref());
    out.finish()
}

/// Like [`super::load_with_sources`], with the memo of the result; `None` if the result depends on earlier
/// runs or on modules of Python.
///
/// # Errors
/// All errors found.
pub fn load_with_memo(
    file: &Path,
    options: &LoadOptions,
) -> Result<(Pipeline, Option<Vec<u8>>), PipelineErrors> {
    let (pipeline, recorded) = load::load_recorded(file, options)?;
    let is_of_files = pipeline.promote.is_none()
        && pipeline.notify.is_empty()
        && pipeline.track.is_empty()
        && !recorded.has_asked_registry;
    let memo = pipeline
        .nodes
        .iter()
        .all(|node| {
            is_of_files
                && node.earlier.is_empty()
                && node.register.is_none()
                && !matches!(&node.work, Work::Command(command) if command.python.is_some())
        })
        .then(|| pack(&pipeline, &recorded, options));
    Ok((pipeline, memo))
}

fn digest_of(bytes: &[u8]) -> BlobDigest {
    BlobRef::of(bytes).blob
}

fn pack(pipeline: &Pipeline, recorded: &Recorded, options: &LoadOptions) -> Vec<u8> {
    let mut out = Writer::default();
    out.list(&recorded.files, |out, (path, digest)| {
        out.path(path);
        out.bytes(digest.as_bytes());
    });
    out.list(&recorded.variables, |out, name| {
        out.text(name);
        let value = options.env.get(name).map_or("", String::as_str);
        out.bytes(digest_of(value.as_bytes()).as_bytes());
    });
    out.text(&pipeline.name);
    out.list(&pipeline.params, |out, (name, value)| {
        out.text(name);
        out.json(value);
    });
    let mut bases: Vec<&Arc<Path>> = Vec::new();
    let of_nodes: Vec<usize> = pipeline
        .nodes
        .iter()
        .map(|node| {
            let known = bases.iter().position(|base| **base == node.base);
            known.unwrap_or_else(|| {
                bases.push(&node.base);
                bases.len() - 1
            })
        })
        .collect();
    out.list(bases, |out, base| out.path(base));
    out.list(
        pipeline.nodes.iter().zip(of_nodes).enumerate(),
        |out, (i, (node, base))| {
            out.number(base as u64);
            pack_node(out, node, recorded.reads.get(&i).unwrap_or(&Reads::default()));
        },
    );
    out.finish()
}

fn pack_node(out: &mut Writer, node: &Node, reads: &Reads) {
    out.text(&node.id);
    out.text(&node.stage);
    out.list(&node.point, |out, (axis, value)| {
        out.text(axis);
        out.json(value);
    });
    match &node.work {
        Work::Kind { kind, config } => {
            out.number(0);
            out.text(kind.name());
            out.number(u64::from(kind.version()));
            out.json(config);
        }
        Work::Command(command) => {
            out.number(1);
            out.text(&command.command);
            out.list(&reads.patterns, |out, pattern| {
                out.text(&pattern.text);
                out.option_text(pattern.pinned.map(|digest| digest.to_hex()).as_deref());
            });
            out.list(&command.files, |out, file| {
                out.text(&file.name);
                out.path(&file.path);
            });
            texts(out, &command.outputs);
            out.list(&command.types, |out, (name, ty)| {
                out.text(name);
                out.text(ty.name());
            });
            out.list(&command.points, |out, (port, folders)| {
                out.text(port);
                out.list(folders, |out, folder| out.text(folder));
            });
            texts(out, &command.env);
            out.list(&command.secrets, |out, name| out.text(name));
            out.text(command.shell.name());
            out.option_text(command.isolation.map(Isolation::name));
            out.number(u64::from(command.network));
            out.list(&reads.tools, |out, tool| {
                out.text(&tool.name);
                out.option_text(tool.version.as_deref());
                out.option_text(tool.lock.as_deref());
            });
            out.number(command.log_limit);
            out.option_text(command.container.as_deref());
        }
    }
    out.list(&node.needs, |out, (port, inputs)| {
        out.text(port);
        out.list(inputs, |out, input| {
            out.number(input.node as u64);
            out.text(&input.output);
        });
    });
    out.list(&node.provides, |out, (name, provided)| {
        out.text(name);
        out.text(provided.ty.name());
        out.list(provided.columns.as_ref(), |out, columns| {
            out.list(columns, |out, column| out.text(column));
        });
        out.option_text(provided.exercise.map(|exercise| exercise.name()));
        out.option_text(provided.calendar.map(|calendar| calendar.name()));
    });
    out.option(node.resources.threads.map(|threads| threads as u64));
    out.option(node.resources.memory);
    out.number(u64::from(node.retries));
    // Durations in pipeline files have whole seconds.
    out.option(node.timeout.map(|timeout| timeout.as_secs()));
    out.number(node.place.line as u64);
    out.number(node.place.column as u64);
}

fn texts(out: &mut Writer, map: &BTreeMap<String, String>) {
    out.list(map, |out, (name, value)| {
        out.text(name);
        out.text(value);
    });
}

/// The pipeline in a memo of this name, if none of its inputs has changed since.
pub fn load_memo(memo: &[u8], file: &Path, options: &LoadOptions) -> Option<Pipeline> {
    let mut from = Reader::new(memo);
    let files: Vec<(PathBuf, BlobDigest)> = from.list(|from| Some((from.path()?, digest(from)?)))?;
    let is_same = |(path, digest): &(PathBuf, BlobDigest)| {
        source::bytes(path).is_ok_and(|bytes| digest_of(&bytes) == *digest)
    };
    let variables: Vec<(String, BlobDigest)> = from.list(|from| Some((from.text()?, digest(from)?)))?;
    let is_set = |(name, digest): &(String, BlobDigest)| {
        options
            .env
            .get(name)
            .is_some_and(|value| digest_of(value.as_bytes()) == *digest)
    };
    if !files.iter().all(is_same) || !variables.iter().all(is_set) {
        return None;
    }
    let name = from.text()?;
    let params = from.map(|from| Some((from.text()?, from.json()?)))?;
    let bases: Vec<Arc<Path>> = from.list(|from| from.path().map(Arc::from))?;
    let finder = Finder::new(&options.env);
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..from.index()? {
        let base = bases.get(from.index()?)?.clone();
        let node = unpack_node(&mut from, base, options, &finder, &nodes)?;
        nodes.push(node);
    }
    from.is_at_end().then(|| Pipeline {
        promote: None,
        notify: Vec::new(),
        track: Vec::new(),
        name,
        file: file.to_owned(),
        base: load::folder_of(file),
        params,
        graph: graph_of(&nodes),
        nodes,
    })
}

fn digest(from: &mut Reader) -> Option<BlobDigest> {
    from.array().map(BlobDigest::from_bytes)
}

/// A value that is written as its name.
fn word<'de, T: Deserialize<'de>>(name: &'de str) -> Option<T> {
    T::deserialize(StrDeserializer::<Unknown>::new(name)).ok()
}

fn option_word<T: DeserializeOwned>(from: &mut Reader) -> Option<Option<T>> {
    match from.option_text()? {
        None => Some(None),
        Some(name) => T::deserialize(StrDeserializer::<Unknown>::new(&name)).ok().map(Some),
    }
}

fn small(from: &mut Reader) -> Option<u32> {
    u32::try_from(from.number()?).ok()
}

/// A node whose files are unchanged. `before` are the preceding nodes, which are the only ones that it can
/// need.
fn unpack_node(
    from: &mut Reader,
    base: Arc<Path>,
    options: &LoadOptions,
    finder: &Finder<'_>,
    before: &[Node],
) -> Option<Node> {
    let (id, stage) = (from.text()?, from.text()?);
    let point = from.map(|from| Some((from.text()?, from.json()?)))?;
    let work = match from.number()? {
        0 => {
            let (name, version) = (from.text()?, small(from)?);
            let mut kinds = options.kinds.iter();
            let kind = kinds.find(|kind| kind.name() == name && kind.version() == version)?;
            Work::Kind {
                kind: kind.as_ref(),
                config: from.json()?.into(),
            }
        }
        1 => {
            let command = from.text()?;
            let patterns: Vec<Pattern> = from.list(|from| {
                Some(Pattern {
                    text: from.text()?,
                    pinned: match from.option_text()? {
                        Some(hex) => Some(hex.parse().ok()?),
                        None => None,
                    },
                    ..Pattern::default()
                })
            })?;
            let known: Vec<(String, PathBuf)> = from.list(|from| Some((from.text()?, from.path()?)))?;
            let files = expanded(&patterns, &base)?;
            let are_same = |(file, (name, path)): (&Source, &(String, PathBuf))| {
                file.name == *name && file.path == *path
            };
            if files.len() != known.len() || !files.iter().zip(&known).all(are_same) {
                return None;
            }
            Work::Command(Arc::new(Command {
                command,
                files,
                outputs: from.map(|from| Some((from.text()?, from.text()?)))?,
                types: from.map(|from| {
                    let name = from.text()?;
                    let ty = from.text()?;
                    Some((name, word(&ty)?))
                })?,
                points: from.map(|from| Some((from.text()?, from.list(Reader::text)?)))?,
                env: from.map(|from| Some((from.text()?, from.text()?)))?,
                secrets: from.list(Reader::text)?,
                shell: named(&from.text()?, Shell::ALL, Shell::name)?,
                isolation: match from.option_text()? {
                    Some(name) => Some(named(&name, Isolation::ALL, Isolation::name)?),
                    None => None,
                },
                network: from.number()? == 1,
                tools: tools(from, finder, &base)?,
                log_limit: from.number()?,
                container: from.option_text()?,
                python: None,
            }))
        }
        _ => return None,
    };
    let node = Node {
        id,
        stage,
        point,
        work,
        needs: from.map(|from| {
            let input = |from: &mut Reader| {
                let node = from.index().filter(|&node| node < before.len())?;
                Some(InputRef {
                    node,
                    output: from.text()?,
                })
            };
            Some((from.text()?, from.list(input)?))
        })?,
        sources: None,
        earlier: BTreeMap::new(),
        provides: from.map(|from| {
            let name = from.text()?;
            let ty = from.text()?;
            let columns: Vec<_> = from.list(|from| from.list(Reader::text))?;
            let provided = Provided {
                ty: word(&ty)?,
                columns: columns.into_iter().next(),
                exercise: option_word(from)?,
                calendar: option_word(from)?,
            };
            Some((name, provided))
        })?,
        resources: Resources {
            threads: from.option()?.and_then(|threads| usize::try_from(threads).ok()),
            memory: from.option()?,
        },
        retries: small(from)?,
        timeout: from.option()?.map(Duration::from_secs),
        register: None,
        base,
        place: Place {
            line: from.index()?,
            column: from.index()?,
        },
    };
    checks_again(&node, before).then_some(node)
}

fn named<T: Copy>(name: &str, all: impl IntoIterator<Item = T>, of: impl Fn(T) -> &'static str) -> Option<T> {
    all.into_iter().find(|value| of(*value) == name)
}

/// The tools as they are found now.
fn tools(from: &mut Reader, finder: &Finder<'_>, base: &Path) -> Option<Vec<Tool>> {
    let requests: Vec<Request> = from.list(|from| {
        Some(Request {
            name: from.text()?,
            version: from.option_text()?,
            lock: from.option_text()?,
        })
    })?;
    let found = requests.iter().map(|request| finder.find(request, base).ok());
    found.collect::<Option<_>>().map(in_order)
}

/// The files that currently match the patterns of `files:`; `None` if a pattern is invalid.
fn expanded(patterns: &[Pattern], base: &Path) -> Option<Vec<Source>> {
    if patterns.is_empty() {
        return Some(Vec::new());
    }
    let mut problems = Problems::new(Texts::default());
    let found = files::expand(patterns, base, &mut problems);
    (!problems.any()).then_some(found)
}

/// True if the files that a stage kind reads exist, and its check gives the recorded result. A kind without
/// files is a function of the memo's contents.
fn checks_again(node: &Node, before: &[Node]) -> bool {
    let Work::Kind { kind, config } = &node.work else {
        return true;
    };
    match kind.sources(config, &node.base) {
        Ok(sources) if sources.is_empty() => true,
        Ok(_) => {
            let plan = PlanContext {
                base: &node.base,
                inputs: load::provided(&node.needs, before),
            };
            let mut provides = load::promised(*kind);
            kind.check(config, &plan).is_ok_and(|checked| {
                provides.extend(checked);
                provides == node.provides
            })
        }
        Err(_) => false,
    }
}
