//! The package that has declared a prefix, found without starting an interpreter, and its kinds.

use super::description::{self, is_kind_name, plain};
use crate::model::{Node, Resources, Work};
use crate::stage::python_stage::{find_interpreter, is_dotted};
use crate::stage::tools::{Finder, Request, Wrong};
use crate::stage::{Command, Scope, Stage, fill};
use crate::text::{Place, Problems};
use crate::{LoadOptions, PythonCall, Tool};
use stages_core::python::{EntryPoint, entry_points, package_files};
use stages_core::{AnyStage, Package};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The group of entry points that declare stage kinds.
const GROUP: &str = "runner.stages";

/// The hint at a package whose code is wrong.
const AUTHORS: &str = "tell its authors";

/// The time that a package has to describe its kinds.
const TIME: Duration = Duration::from_secs(30);

/// The largest description of a package's kinds, in bytes.
pub const LARGEST_DESCRIPTION: u64 = 1 << 20;

/// Runs the node that describes the kinds of a package, isolated as `run:` stages are, unless it has been run
/// before, and returns the bytes of its output `kinds`; otherwise an error and a hint.
pub type DescribeKinds = Box<dyn Fn(&Node) -> Result<Vec<u8>, (String, String)> + Send + Sync>;

/// The kinds of a prefix, or why there are none.
pub(crate) type Kinds = Result<&'static [Box<dyn AnyStage>], NoKinds>;

/// The reason why a prefix has no kinds.
#[derive(Clone)]
pub(crate) enum NoKinds {
    /// No package declares the prefix: where packages were looked for.
    Nothing(String),
    /// There is no such interpreter.
    Interpreter(Wrong),
    /// The package is wrong.
    Wrong(Wrong),
}

/// A prefix that an installed package declares.
pub struct Prefix {
    /// The prefix.
    pub name: String,
    /// The package and its version.
    pub package: String,
    /// The reason why it has no kinds.
    pub wrong: Option<String>,
}

/// The kinds of the packages of an interpreter, described when their prefix is asked for.
pub struct Packages<'a> {
    options: &'a LoadOptions,
    known: RefCell<BTreeMap<(String, String), Kinds>>,
}

impl<'a> Packages<'a> {
    /// No package is looked for yet.
    pub fn new(options: &'a LoadOptions) -> Self {
        Self {
            options,
            known: RefCell::default(),
        }
    }

    /// The prefixes that the packages of the default interpreter declare; none if there is no interpreter.
    pub fn prefixes(&self) -> Vec<Prefix> {
        let finder = self.finder();
        let Ok((call, _)) = interpreter(&finder.interpreter(None, None), &finder, Path::new("")) else {
            return Vec::new();
        };
        let points = entry_points(&call.sites, GROUP);
        let prefix = |point: &EntryPoint| Prefix {
            name: plain(&point.name),
            package: shown(point),
            wrong: self.wrong(point, &points),
        };
        points.iter().map(prefix).collect()
    }

    /// The kinds of a prefix that a package of the default interpreter declares.
    ///
    /// # Errors
    /// An error and a hint.
    pub fn kinds(&self, prefix: &str) -> Result<&'static [Box<dyn AnyStage>], (String, String)> {
        let finder = self.finder();
        self.of(prefix, &finder.interpreter(None, None), &finder, Path::new(""))
            .map_err(|found| match found {
                NoKinds::Wrong(wrong) | NoKinds::Interpreter(wrong) => wrong,
                NoKinds::Nothing(place) => (
                    format!("no package of {place} declares the prefix `{prefix}`"),
                    "install the package there; `runner stages` lists the prefixes".to_owned(),
                ),
            })
    }

    /// True if a stage kind may belong to a package: its family is none of the program's own.
    pub(crate) fn may_have(&self, kind: &str) -> bool {
        let family = kind.split_once('/').map(|(family, _)| family);
        family.is_some_and(|family| !self.is_own(family))
    }

    /// The kinds of the prefix of a stage's `uses:`; `None` if the stage's interpreter is not known.
    pub(crate) fn of_stage(
        &self,
        prefix: &str,
        stage: &Stage,
        (scope, base): (&Scope, &Path),
        finder: &Finder<'_>,
        problems: &mut Problems,
    ) -> Option<Kinds> {
        let named = match stage.settings.entry("python") {
            None => None,
            Some((_, value)) if value.any_text(&|text| text.contains("${matrix.")) => {
                return problems.fail(
                    value.spot,
                    "the interpreter of a package's kind depends on the matrix",
                    "its kinds are read from it: write one interpreter, or a stage for each",
                );
            }
            Some((_, value)) => Some(fill(value, scope, problems).text()?.to_owned()),
        };
        Some(self.of(prefix, &finder.interpreter(named, None), finder, base))
    }

    fn finder(&self) -> Finder<'a> {
        Finder::new(&self.options.env, self.options.python.as_deref())
    }

    fn is_own(&self, prefix: &str) -> bool {
        let names = self.options.kinds.iter().map(|kind| kind.name());
        let mut families = names.filter_map(|name| name.split_once('/'));
        ["runner", "python", "run"].contains(&prefix) || families.any(|(family, _)| family == prefix)
    }

    fn of(&self, prefix: &str, python: &Request, finder: &Finder<'_>, base: &Path) -> Kinds {
        let place = match python.name.contains('/') {
            true => base.join(&python.name).display().to_string(),
            false => python.name.clone(),
        };
        let key = (prefix.to_owned(), place);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = self.describe(prefix, python, finder, base);
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// The reason why an entry point is refused before its package is imported.
    fn wrong(&self, point: &EntryPoint, all: &[EntryPoint]) -> Option<String> {
        let (name, package) = (plain(&point.name), shown(point));
        if self.is_own(&point.name) {
            return Some(format!(
                "the package {package} declares the prefix `{name}`, which belongs to this program"
            ));
        }
        if !is_kind_name(&point.name) {
            return Some(format!(
                "the package {package} declares `{name}`, which is not a valid prefix: lowercase letters, digits and \
                `_`"
            ));
        }
        let packages: BTreeSet<String> = all
            .iter()
            .filter(|other| other.name == point.name)
            .map(|other| format!("{} in {}", shown(other), other.record.display()))
            .collect();
        if packages.len() > 1 {
            let packages: Vec<String> = packages.into_iter().collect();
            return Some(format!(
                "the prefix `{name}` is declared by several packages: {}",
                packages.join(", and ")
            ));
        }
        let value = point.value.split_once(':');
        if value.is_none_or(|(module, attribute)| !is_dotted(module) || !is_dotted(attribute)) {
            return Some(format!(
                "the entry point `{name}` of the package {package} is `{}`, not MODULE:ATTRIBUTE",
                plain(&point.value)
            ));
        }
        None
    }

    fn describe(&self, prefix: &str, python: &Request, finder: &Finder<'_>, base: &Path) -> Kinds {
        let wrong = |message: String, hint: &str| Err(NoKinds::Wrong((message, hint.to_owned())));
        let (mut call, mut tool) = interpreter(python, finder, base).map_err(NoKinds::Interpreter)?;
        let points = entry_points(&call.sites, GROUP);
        let Some(point) = points.iter().find(|point| point.name == prefix) else {
            return Err(NoKinds::Nothing(format!("`{}` ({})", python.name, tool.path.display())));
        };
        if let Some(message) = self.wrong(point, &points) {
            return wrong(message, "uninstall it, or tell its authors");
        }
        let package = shown(point);
        let files = match package_files(&point.record) {
            Ok(files) => files,
            Err(message) => return wrong(format!("the package {package}: {message}"), "install it by pip"),
        };
        let (module, attribute) = point.value.split_once(':').unwrap_or_default();
        let path = module.replace('.', "/");
        let own = [format!("{path}.py"), format!("{path}/__init__.py")];
        if !files.iter().any(|file| own.contains(&file.name)) {
            return wrong(
                format!(
                    "the module `{module}` of the entry point `{prefix}` is not a file of the package \
                    {package}"
                ),
                "it has to be one; a package that is installed in place (`pip install -e`) is not seen by \
                isolated programs: install it by `pip install PATH`",
            );
        }
        let Some(describe) = &self.options.describe else {
            return wrong(
                format!("the kinds of the package {package} cannot be read here"),
                "use the command `runner`",
            );
        };
        tool.sources.extend(files.iter().cloned());
        call.call = "runner_kinds:describe".to_owned();
        call.with = [("module", module), ("attribute", attribute)]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into();
        let node = node(prefix, call, tool, base);
        let described = describe(&node).map_err(|(message, hint)| {
            let message = message.replace("`runner_kinds:describe`", "it");
            let message = format!("the package {package} does not describe its kinds: {message}");
            let hint = if hint.is_empty() { AUTHORS.to_owned() } else { hint };
            NoKinds::Wrong((message, hint))
        })?;
        let package_of = Package {
            name: point.package.clone(),
            version: point.version.clone(),
            call: String::new(),
            files,
        };
        kept(&described, prefix, &package_of).map_err(|message| {
            let message = format!("the package {package} does not describe its kinds: {message}");
            NoKinds::Wrong((message, AUTHORS.to_owned()))
        })
    }
}

fn interpreter(request: &Request, finder: &Finder<'_>, base: &Path) -> Result<(PythonCall, Tool), Wrong> {
    let mut call = PythonCall::default();
    let tool = find_interpreter(request, finder, base, &mut call)?;
    Ok((call, tool))
}

/// A package and its version, for messages.
fn shown(point: &EntryPoint) -> String {
    format!("`{}` {}", plain(&point.package), plain(&point.version))
}

/// The node that describes the kinds of a package.
fn node(prefix: &str, call: PythonCall, tool: Tool, base: &Path) -> Node {
    let command = Command {
        outputs: [("kinds".to_owned(), "kinds.json".to_owned())].into(),
        tools: vec![tool],
        python: Some(call),
        ..Command::default()
    };
    Node {
        id: format!("kinds of {prefix}"),
        stage: format!("kinds of {prefix}"),
        point: BTreeMap::new(),
        work: Work::Command(command.into()),
        sources: None,
        needs: BTreeMap::new(),
        earlier: BTreeMap::new(),
        provides: BTreeMap::new(),
        resources: Resources::default(),
        retries: 0,
        timeout: Some(TIME),
        register: None,
        base: base.into(),
        place: Place::default(),
    }
}

/// The kinds of a description, which are kept for as long as the program lives, each once.
fn kept(described: &[u8], prefix: &str, package: &Package) -> Result<&'static [Box<dyn AnyStage>], String> {
    type Known = (Vec<u8>, String, Package, &'static [Box<dyn AnyStage>]);
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |(bytes, name, of, _): &&Known| bytes == described && name == prefix && of == package;
    if let Some((.., kinds)) = known.iter().find(is_same) {
        return Ok(kinds);
    }
    let kinds = description::kinds(described, prefix, package)?;
    known.push((described.to_vec(), prefix.to_owned(), package.clone(), kinds));
    Ok(kinds)
}
