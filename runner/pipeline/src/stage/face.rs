//! The interface of a stage: its kind, which `uses:` names, or its program.

use crate::package::{Kinds, NoKinds};
use crate::stage::written::{Job, Output, Program, Stage};
use crate::text::{Problems, list, nearest, suggest};
use stages_core::{AnyStage, OutputPort, PortType};

/// The interface of a stage, derived from its kind or its program.
#[derive(Clone, Copy)]
pub(crate) enum Face<'a> {
    Kind(&'static dyn AnyStage),
    Program(&'a Program),
    /// Unknown; the error is already reported.
    Unknown,
}

impl<'a> Face<'a> {
    /// The names and types of the outputs; none if unknown.
    pub(crate) fn outputs(&self) -> Vec<(&'a str, PortType)> {
        match self {
            Self::Kind(kind) => {
                let outputs: &'static [OutputPort] = kind.ports().outputs;
                outputs.iter().map(|port| (port.name, port.ty)).collect()
            }
            Self::Program(program) => program.outputs.iter().map(Output::port).collect(),
            Self::Unknown => Vec::new(),
        }
    }
}

/// Finds the kinds of the installed package with a prefix that a stage names; `None` if an error was
/// reported.
type FindPackage<'f> = dyn Fn(&str, &Stage, &mut Problems) -> Option<Kinds> + 'f;

/// The stage kind or program of each stage.
pub(crate) fn faces<'a>(
    stages: &'a [Stage],
    kinds: &'static [Box<dyn AnyStage>],
    packages: &FindPackage<'_>,
    problems: &mut Problems,
) -> Vec<Face<'a>> {
    let names = || kinds.iter().map(|kind| kind.name());
    let mut face = |stage: &'a Stage| match &stage.job {
        Job::Broken => Face::Unknown,
        Job::Program(program) => Face::Program(program),
        Job::Package(name, _) => {
            let prefix = name.split_once('/').map_or(name.as_str(), |(prefix, _)| prefix);
            let Some(found) = packages(prefix, stage, problems) else {
                return Face::Unknown;
            };
            let unknown = || format!("there is no stage kind `{name}`");
            let (message, hint) = match found {
                Ok(kinds) => {
                    if let Some(kind) = kinds.iter().find(|kind| kind.name() == name) {
                        return Face::Kind(kind.as_ref());
                    }
                    (
                        unknown(),
                        suggest(name, "kinds of the package", kinds.iter().map(|kind| kind.name())),
                    )
                }
                Err(NoKinds::Wrong(wrong)) => wrong,
                Err(_) if name.contains("${") => {
                    (unknown(), "`uses` cannot contain interpolations".to_owned())
                }
                Err(found) => match (nearest(name, names()), found) {
                    (Some(near), _) => (unknown(), format!("did you mean `{near}`?")),
                    (_, NoKinds::Interpreter((message, hint))) => (
                        unknown(),
                        format!(
                            "kinds of packages are looked for in the stage's Python, but {message}: {hint}"
                        ),
                    ),
                    (_, NoKinds::Nothing(place)) => (
                        unknown(),
                        format!(
                            "`runner stages` lists them; no package of {place} declares the prefix `{prefix}`: \
                            install it there, or name another interpreter by `python:`"
                        ),
                    ),
                    (_, NoKinds::Wrong(wrong)) => wrong,
                },
            };
            problems.add(stage.uses, message, hint);
            Face::Unknown
        }
        Job::Kind(name) => match kinds.iter().find(|kind| kind.name() == name) {
            Some(kind) => Face::Kind(kind.as_ref()),
            None => {
                let family = name.split_once('/').map(|(family, _)| format!("{family}/"));
                let is_sibling =
                    |known: &&str| family.as_ref().is_some_and(|family| known.starts_with(family));
                let siblings: Vec<&str> = names().filter(is_sibling).collect();
                let hint = match nearest(name, names()) {
                    _ if name.contains("${") => "`uses` cannot contain interpolations".to_owned(),
                    Some(near) => format!("did you mean `{near}`?"),
                    None if siblings.is_empty() => suggest(name, "stage kinds", names()),
                    None => format!("the kinds of this family are {}", list(siblings)),
                };
                problems.add(stage.uses, format!("there is no stage kind `{name}`"), hint);
                Face::Unknown
            }
        },
    };
    stages.iter().map(&mut face).collect()
}
