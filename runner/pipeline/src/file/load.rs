//! Loading of a pipeline file to a resolved graph.

mod node;

use crate::file::compose::compose;
use crate::file::connections::Connections;
use crate::file::description::description;
use crate::file::document::{self, Document};
use crate::file::overrides::{self, OfNight};
use crate::file::registration;
use crate::file::resolved::{self, Resolved};
use crate::file::search;
use crate::matrix::{MOST_NODES, Point, axes, points};
use crate::model::graph_of;
use crate::package::Packages;
use crate::schedule::{self, NightDates, Schedule, Scheduled};
use crate::stage::{Connector, Face, Finder, Job, Needs, Scope, Setting, Stage, This, faces, fill, needs};
use crate::text::{Block, Problems, Texts, Tree, source, yaml};
use crate::{DescribeKinds, FindEarlier, FindTried, Notify, Pipeline, PipelineErrors, Work};
use stages_core::AnyStage;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options for loading a pipeline file.
#[derive(Default)]
pub struct LoadOptions {
    /// The arguments of `--set`: `NAME=VALUE` or `STAGE.with.KEY=VALUE`.
    pub set: Vec<String>,
    /// The arguments of `--profile`, in the order given.
    pub profiles: Vec<String>,
    /// The environment, for `${env.X}`.
    pub env: BTreeMap<String, String>,
    /// The dates of the night that is run, for `${schedule.X}` and for the parameters that `schedule:` sets.
    pub night: Option<NightDates>,
    /// The available stage kinds.
    pub kinds: &'static [Box<dyn AnyStage>],
    /// The interpreter of Python stages that name none; `python3` if absent.
    pub python: Option<String>,
    /// Describes the kinds of an installed Python package; if absent, packages have no kinds.
    pub describe: Option<DescribeKinds>,
    /// Finds artifacts of earlier runs; if absent, references to such artifacts are errors.
    pub earlier: Option<FindEarlier>,
    /// Counts the policies that were tried under a name, for `${policies.NAME.tried}`; if absent, that
    /// interpolation is an error.
    pub tried: Option<FindTried>,
}

impl LoadOptions {
    /// Options without settings, with an empty environment.
    pub fn new(kinds: &'static [Box<dyn AnyStage>]) -> Self {
        Self {
            kinds,
            ..Self::default()
        }
    }
}

/// Loads, resolves and checks a pipeline file. Apart from the file itself, only the names of the files of
/// `run:` stages are read.
///
/// # Errors
/// All errors found, each with its position and a hint.
pub fn load(file: &Path, options: &LoadOptions) -> Result<Pipeline, PipelineErrors> {
    let text = source::read(file)?;
    Loader::new(file, text, options, false).load()
}

/// Like [`load`], and checks that the source files of the stages exist (data sets and the like).
///
/// # Errors
/// All errors found, including missing files.
pub fn load_with_sources(file: &Path, options: &LoadOptions) -> Result<Pipeline, PipelineErrors> {
    let text = source::read(file)?;
    Loader::new(file, text, options, true).load()
}

/// The absolute directory of a pipeline file.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Like [`load`], with `text` as the contents of `file`.
///
/// # Errors
/// All errors found.
pub fn load_text(file: &Path, text: &[u8], options: &LoadOptions) -> Result<Pipeline, PipelineErrors> {
    let text = source::decode(file, text.to_vec())?;
    Loader::new(file, text, options, false).load()
}

/// The schedule of a pipeline file, without resolving its stages; `None` if it has none.
///
/// # Errors
/// The errors of the file's keys, parameters and schedule.
pub fn scheduled(file: &Path, options: &LoadOptions) -> Result<Option<Scheduled>, PipelineErrors> {
    let mut loader = Loader::new(file, source::read(file)?, options, false);
    let found = loader.document().and_then(|document| {
        let schedule = loader.schedule(&document);
        let notify = loader.notify(&document);
        (!loader.problems.any()).then_some((document.name, schedule, notify))
    });
    let Some((name, schedule, notify)) = found else {
        return Err(loader.problems.finish());
    };
    let base = loader.base.to_path_buf();
    Ok(schedule.map(|schedule| Scheduled {
        name,
        base,
        schedule,
        notify,
    }))
}

/// The names in a pipeline file and its included files, for shell completion; available even if the file has
/// errors.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The parameters.
    pub params: Vec<String>,
    /// The profiles.
    pub profiles: Vec<String>,
    /// The stages, with their kinds; programs have no kind.
    pub stages: Vec<(String, Option<String>)>,
}

/// Reads the names in a pipeline file; `None` if it cannot be read at all.
pub fn names(file: &Path, options: &LoadOptions) -> Option<Names> {
    let mut loader = Loader::new(file, source::read(file).ok()?, options, false);
    let document = loader.written()?;
    let stage = |stage: &Stage| {
        let kind = match &stage.job {
            Job::Kind(name) | Job::Package(name, _) => Some(name.clone()),
            Job::Program(_) | Job::Broken => None,
        };
        (stage.key.name.clone(), kind)
    };
    Some(Names {
        params: document.params.iter().map(|(key, _)| key.name.clone()).collect(),
        profiles: document.profiles.iter().map(|(key, _)| key.name.clone()).collect(),
        stages: document.stages.iter().map(stage).collect(),
    })
}

/// The text of a pipeline as one file, in which everything that does not differ between points is resolved.
///
/// # Errors
/// All errors that [`load_with_sources`] finds.
pub fn resolved(file: &Path, options: &LoadOptions) -> Result<String, PipelineErrors> {
    let mut loader = Loader::new(file, source::read(file)?, options, true);
    let mut document = match loader.resolve() {
        Some(document) if !loader.problems.any() => document,
        _ => return Err(loader.problems.finish()),
    };
    overrides::fix_schedule(&options.set, &loader.settings, &mut document);
    let schedule = loader.schedule(&document);
    let by_night = resolved::set_by_night(&document);
    let mut params = loader.values.params.clone();
    params.retain(|name, _| !by_night.contains(name.as_str()));
    let point = Point::new();
    let axes = Scope {
        verbatim: true,
        ..loader.values.at(&point)
    };
    let resolved = Resolved {
        document: &document,
        scope: Scope {
            params: Some(&params),
            ..axes
        },
        axes,
        schedule: schedule.as_ref(),
        notify: &loader.pipeline.notify,
        settings: &loader.settings,
        kinds: options.kinds,
        file,
        base: &loader.base,
        bases: &loader.bases,
    };
    Ok(resolved.text(&mut loader.problems))
}

struct Loader<'a> {
    file: &'a Path,
    base: Arc<Path>,
    /// The directories of the stages that come from included files.
    bases: BTreeMap<String, Arc<Path>>,
    options: &'a LoadOptions,
    /// The values that interpolations read.
    values: Values<'a>,
    /// If set, source files and tools are looked up.
    sources: bool,
    finder: Finder<'a>,
    packages: Packages<'a>,
    problems: Problems,
    settings: Vec<Setting>,
    pipeline: Pipeline,
}

/// The values that interpolations read.
struct Values<'a> {
    params: BTreeMap<String, Tree>,
    options: &'a LoadOptions,
    /// The environment variables that some stage lists in `secrets:`.
    secrets: BTreeSet<String>,
}

impl Values<'_> {
    /// The scope of a matrix, without points.
    fn scope(&self) -> Scope<'_> {
        Scope {
            params: Some(&self.params),
            matrix: None,
            env: &self.options.env,
            tried: self.options.tried.as_ref(),
            night: self.options.night,
            secrets: &self.secrets,
            verbatim: false,
        }
    }

    /// The scope of a stage at a point.
    fn at<'s>(&'s self, point: &'s Point) -> Scope<'s> {
        Scope {
            matrix: Some(point),
            ..self.scope()
        }
    }

    /// The scope of the blocks beside the stages, which includes the dates of a night.
    fn beside(&self) -> Scope<'_> {
        Scope {
            night: self.options.night.or(Some(NightDates::EXAMPLE)),
            ..self.scope()
        }
    }
}

/// A stage before its expansion.
struct Plan<'s> {
    stage: &'s Stage,
    face: Face<'s>,
    needs: &'s Needs,
}

impl<'a> Loader<'a> {
    fn new(file: &'a Path, text: String, options: &'a LoadOptions, sources: bool) -> Self {
        let description = description(&text);
        let mut texts = Texts::default();
        texts.push(file.to_owned(), text);
        overrides::texts(&mut texts, &options.set, &options.profiles);
        Self {
            file,
            base: folder_of(file).into(),
            bases: BTreeMap::new(),
            options,
            values: Values {
                params: BTreeMap::new(),
                options,
                secrets: BTreeSet::new(),
            },
            sources,
            finder: Finder::new(&options.env, options.python.as_deref()),
            packages: Packages::new(options),
            problems: Problems::new(texts),
            settings: Vec::new(),
            pipeline: Pipeline {
                description,
                file: file.to_owned(),
                base: folder_of(file),
                ..Pipeline::default()
            },
        }
    }

    fn load(mut self) -> Result<Pipeline, PipelineErrors> {
        let document = match self.resolve() {
            Some(document) if !self.problems.any() => document,
            _ => return Err(self.problems.finish()),
        };
        let params = self.values.params.iter();
        Ok(Pipeline {
            name: document.name,
            params: params.map(|(name, value)| (name.clone(), value.to_json())).collect(),
            graph: graph_of(&self.pipeline.nodes),
            ..self.pipeline
        })
    }

    /// The document with its includes, as written; `None` if the errors prevent further checks.
    fn written(&mut self) -> Option<Document> {
        let root = yaml::read(0, &mut self.problems)?;
        let composed = compose(root, self.file, &self.base, &mut self.problems);
        self.bases = composed.bases;
        let may_be_package = |kind: &str| self.packages.may_have(kind);
        document::read(composed.root, self.file, &may_be_package, &mut self.problems)
    }

    /// The document with its includes, profiles, settings and parameters; `None` if the errors prevent
    /// further checks.
    fn document(&mut self) -> Option<Document> {
        let mut document = self.written()?;
        let options = self.options;
        let programs = document.stages.iter().filter_map(Stage::program);
        self.values.secrets = programs.flat_map(|program| program.secrets.clone()).collect();
        let night = self.params_of_night(&document);
        self.settings = overrides::apply(
            &options.set,
            &options.profiles,
            night,
            &mut document,
            &mut self.problems,
        );
        self.fill_params(&document);
        Some(document)
    }

    /// Fills `nodes`; `None` if the errors prevent further checks.
    fn resolve(&mut self) -> Option<Document> {
        let document = self.document()?;
        self.schedule(&document);
        self.pipeline.notify = self.notify(&document);
        let track = document.track.as_ref();
        self.pipeline.track = Block::entry("track").list(track, &self.values.beside(), &mut self.problems);
        let (beside, problems) = (self.values.beside(), &mut self.problems);
        let tree = document.search.as_ref();
        self.pipeline.search = tree.and_then(|tree| search::read(tree, &document, &beside, problems));
        let stages = &document.stages;
        let (values, packages, finder) = (&self.values, &self.packages, &self.finder);
        let packages = |prefix: &str, stage: &Stage, problems: &mut Problems| {
            let base = self.bases.get(&stage.key.name).unwrap_or(&self.base);
            packages.of_stage(prefix, stage, (&values.scope(), base), finder, problems)
        };
        let faces = faces(stages, self.options.kinds, &packages, &mut self.problems);
        let names: Vec<&str> = stages.iter().map(|stage| stage.key.name.as_str()).collect();
        let connector = Connector {
            stages,
            faces: &faces,
            names: names.iter().copied().zip(0..).collect(),
            this: This {
                name: &document.name,
                file: self.file,
                base: &self.base,
            },
            find: self.options.earlier.as_ref(),
        };
        let needs = (0..stages.len()).map(|index| connector.resolve(index, &mut self.problems));
        let needs: Vec<Needs> = needs.collect();
        let order = needs::order(stages, &needs, &mut self.problems)?;
        let mut points: Vec<Vec<Point>> = vec![Vec::new(); stages.len()];
        let mut first: Vec<usize> = vec![0; stages.len()];
        let mut sound = vec![false; stages.len()];
        let mut ids: HashMap<String, String> = HashMap::new();
        for index in order {
            let plan = Plan {
                stage: &stages[index],
                face: faces[index],
                needs: &needs[index],
            };
            let known = |reference: &needs::Reference| sound[reference.stage];
            let mut references = plan.needs.ports.iter().flat_map(|(_, references)| references);
            if !plan.needs.sound || !references.all(known) {
                // The needs or points are invalid: check at least the stage's own settings.
                self.settle_alone(&plan);
                continue;
            }
            let Some(own) = axes::read(&plan.stage.matrix, &self.values.scope(), &mut self.problems) else {
                continue;
            };
            let stage = &plan.stage.key.name;
            let Some(own) = points::points(stage, &own, plan.needs, &names, &points, &mut self.problems)
            else {
                continue;
            };
            if self.pipeline.nodes.len() + own.len() > MOST_NODES {
                return self.problems.fail(
                    plan.stage.key.spot,
                    format!("the pipeline has more than {MOST_NODES} stages, matrices expanded"),
                    "give the matrices fewer values",
                );
            }
            first[index] = self.pipeline.nodes.len();
            sound[index] = !matches!(plan.face, Face::Unknown);
            let before = self.problems.count();
            let connections = Connections::new(plan.needs, &points);
            for point in &own {
                // An error of one point applies to all points; report it once.
                let quiet = self.problems.count() > before;
                let mut node = self.node(&plan, point, connections.inputs(point, &first), quiet);
                if let Work::Command(command) = &mut node.work {
                    Arc::make_mut(command).points = connections.folders(point);
                }
                if let Some(other) = ids.insert(node.id.to_lowercase(), node.id.clone())
                    && !quiet
                {
                    self.problems.add(
                        plan.stage.key.spot,
                        format!("`{other}` and `{}` differ only in case", node.id),
                        "rename one: on a Mac, whose file systems ignore case, their logs would be one file",
                    );
                }
                self.pipeline.nodes.push(node);
            }
            points[index] = own;
        }
        if let Some(tree) = &document.promote
            && !self.problems.any()
        {
            self.pipeline.promote = registration::promote(tree, &self.pipeline.nodes, &mut self.problems);
        }
        Some(document)
    }

    /// The parameters that the schedule sets for the night.
    fn params_of_night(&mut self, document: &Document) -> OfNight {
        let scope = Scope {
            params: None,
            ..self.values.beside()
        };
        let params = document.schedule.as_ref().map(schedule::params).unwrap_or_default();
        let problems = &mut self.problems;
        let filled = params.iter().filter_map(|(key, value)| {
            let before = problems.count();
            let value = fill(value, &scope, problems);
            (problems.count() == before).then(|| (key.clone(), value))
        });
        OfNight {
            is_set: self.options.night.is_some(),
            values: filled.collect(),
        }
    }

    /// The schedule; `None` if there is none, or it has errors.
    fn schedule(&mut self, document: &Document) -> Option<Schedule> {
        let stages: Vec<&str> = document.stages.iter().map(|stage| stage.key.name.as_str()).collect();
        schedule::read(
            document.schedule.as_ref()?,
            &stages,
            &self.values.beside(),
            &mut self.problems,
        )
    }

    fn notify(&mut self, document: &Document) -> Vec<Notify> {
        let tree = document.notify.as_ref();
        Block::entry("notify").list(tree, &self.values.beside(), &mut self.problems)
    }

    /// Replaces interpolations of the environment in the parameters.
    fn fill_params(&mut self, document: &Document) {
        let mut params = BTreeMap::new();
        let scope = Scope {
            params: None,
            ..self.values.scope()
        };
        for (key, value) in &document.params {
            // Values from the command line are not interpolated.
            let value = if self.problems.texts.is_argument(value.spot.text) {
                value.clone()
            } else {
                let filled = fill(value, &scope, &mut self.problems);
                Tree { note: None, ..filled }
            };
            params.insert(key.name.clone(), value);
        }
        self.values.params = params;
    }

    /// Checks the stage's own settings when its needs or points are unknown.
    fn settle_alone(&mut self, plan: &Plan) {
        let is_fixed =
            plan.stage.matrix.is_empty() && !plan.stage.with.any_text(&|text| text.contains("${matrix."));
        if let Face::Kind(kind) = plan.face
            && is_fixed
        {
            self.configure(kind, plan.stage, &Point::new());
        }
    }
}
