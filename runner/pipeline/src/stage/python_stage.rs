//! `uses: python` stages: a function of the user's own modules, run by an interpreter in an isolated program.
//!
//! The stage is a [`Command`] whose text the engine supplies: everything that applies to programs (isolation,
//! limits, log, history) applies to it.

use crate::stage::command::{Check, Command, OfPackage, PythonCall, Tool};
use crate::stage::interpolate::Scope;
use crate::stage::setting::Setting;
use crate::stage::tools::{Finder, Request, Wrong, in_order};
use crate::stage::written::Stage;
use crate::text::{Problems, Spot, Text, Written, or_interpolation, relative};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value as Json;
use stages_core::python::{imported, installed_packages};
use stages_core::{AnyStage, Package, PortType, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// The keys of a Python stage that `run:` stages do not have; the settings are read at each point.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    #[schemars(skip)]
    uses: IgnoredAny,
    #[schemars(skip)]
    with: IgnoredAny,
    /// The function of a `uses: python` stage, `MODULE:FUNCTION`: called with a context, the inputs and
    /// `with` by name.
    call: Option<Text<Call>>,
    /// The directory of the function's modules, relative to the pipeline; the pipeline's own by default.
    path: Option<Text<ModuleRoot>>,
    /// The interpreter: a program on PATH, the path of one, or the directory of an environment; that of
    /// `config.yaml`, or `python3`, by default. Part of the key, with its packages.
    python: Option<String>,
    /// The file that lists the environment's packages: part of the key.
    lock: Option<String>,
    /// The seed of the context: part of the key.
    #[schemars(extend("default" = 0), transform = or_interpolation)]
    seed: u64,
    /// The rows with which it is checked, once for new code, that a function called by symbol or by partition
    /// gives the same for all rows at once: those of a sample of symbols, or of all, or none.
    #[schemars(extend("default" = "whole"), transform = or_interpolation)]
    check: Check,
}

/// The function to call, written as `MODULE:FUNCTION`.
struct Call {
    call: String,
    module: String,
}

impl Written for Call {
    fn read(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once(':')
            .filter(|(module, function)| is_dotted(module) && is_dotted(function));
        match parts {
            Some((module, _)) => Ok(Self {
                call: text.to_owned(),
                module: module.to_owned(),
            }),
            None => Err(", not MODULE:FUNCTION\n".to_owned()),
        }
    }
}

/// The directory of the modules, relative to the pipeline; empty for the pipeline's own directory.
struct ModuleRoot(String);

impl Written for ModuleRoot {
    fn read(text: &str) -> Result<Self, String> {
        let root = (text == ".").then(String::new).or_else(|| relative(text));
        root.map(Self)
            .ok_or_else(|| ", not a directory beside the pipeline\n".to_owned())
    }
}

/// Resolves the call at a matrix point: adds the interpreter to the tools, and the modules to the files, of
/// `command`. Without `finder`, neither is looked up.
pub(crate) fn resolve(
    stage: &Stage,
    settings: &[Setting],
    scope: &Scope,
    finder: Option<&Finder<'_>>,
    base: &Path,
    command: &mut Command,
    problems: &mut Problems,
) {
    if stage.settings.entry("call").is_none() {
        problems.add(
            stage.uses,
            "a Python stage has no `call`",
            "name the function: `call: my_stages:make_features`, in `my_stages.py` beside the pipeline",
        );
        return;
    }
    let at = |key: &str| stage.settings.entry(key).map_or(stage.uses, |(_, value)| value.spot);
    let Some(read) = stage.read::<Settings>("python", scope, problems) else {
        return;
    };
    let Some(Text(Call { call, module })) = read.call else {
        return;
    };
    let with = stage.with(settings, Json::default, scope, problems);
    let with: BTreeMap<String, Json> = serde_json::from_value(with.to_json()).unwrap_or_default();
    for name in with.keys() {
        let is_need = stage.needs.iter().any(|(key, _)| key.name == *name);
        if is_need || !is_dotted(name) || name.contains('.') {
            let (message, hint) = match is_need {
                true => (
                    format!("`{name}` is an input and a setting of one function"),
                    "rename one of them: both are given as arguments by name",
                ),
                false => (
                    format!("the setting `{name}` cannot be the name of an argument"),
                    "such a name consists of letters, digits and `_`",
                ),
            };
            problems.add(stage.with.spot, message, hint);
        }
    }
    for (key, _) in stage.needs.iter().filter(|(key, _)| !is_dotted(&key.name)) {
        problems.add(
            key.spot,
            format!("the input `{}` cannot be the name of an argument", key.name),
            "such a name consists of letters, digits and `_`",
        );
    }
    let mut python = PythonCall {
        call,
        with,
        seed: read.seed,
        check: read.check,
        root: read.path.map(|Text(ModuleRoot(root))| root).unwrap_or_default(),
        ..PythonCall::default()
    };
    add_modules(&module, &python, base, at("call"), command, problems);
    let found = finder.map(|finder| {
        let request = finder.interpreter(read.python, read.lock);
        find_interpreter(&request, finder, base, &mut python)
    });
    match found {
        Some(Ok(found)) => add_interpreter(found, &[], command),
        Some(Err((message, hint))) => problems.add(at("python"), message, hint),
        None => {}
    }
    command.python = Some(python);
}

/// Resolves the call of a package's kind at a matrix point, as [`resolve`] does: its function, ports and
/// settings are those of the kind, and the files of the package are part of the key.
pub(crate) fn resolve_kind(
    (kind, package): (&dyn AnyStage, &Package),
    config: &stages_core::Settings,
    stage: &Stage,
    (scope, base): (&Scope, &Path),
    finder: Option<&Finder<'_>>,
    command: &mut Command,
    problems: &mut Problems,
) {
    let Some(read) = stage.read::<Settings>("python", scope, problems) else {
        return;
    };
    let with = config.as_object().cloned().unwrap_or_default();
    let mut python = PythonCall {
        call: package.call.clone(),
        kind: Some(OfPackage {
            name: kind.name().to_owned(),
            version: kind.version(),
        }),
        with: with.into_iter().collect(),
        seed: read.seed,
        check: read.check,
        ..PythonCall::default()
    };
    for port in kind.ports().outputs {
        command
            .outputs
            .insert(port.name.to_owned(), format!("outputs/{}", port.name));
        if port.ty != PortType::File {
            command.types.insert(port.name.to_owned(), port.ty);
        }
    }
    let found = finder.map(|finder| {
        let request = finder.interpreter(read.python, read.lock);
        find_interpreter(&request, finder, base, &mut python)
    });
    match found {
        Some(Ok(found)) => add_interpreter(found, &package.files, command),
        Some(Err((message, hint))) => problems.add(stage.uses, message, hint),
        None => {}
    }
    command.python = Some(python);
}

/// Adds the interpreter to the tools of a command, unless they have it, and to its key the files of a
/// package.
fn add_interpreter(found: Tool, files: &[Source], command: &mut Command) {
    let mut tools = std::mem::take(&mut command.tools);
    let name = found.name.clone();
    if !tools.iter().any(|tool| tool.name == name) {
        tools.push(found);
    }
    for tool in tools.iter_mut().filter(|tool| tool.name == name) {
        tool.sources.extend(files.iter().cloned());
    }
    command.tools = in_order(tools);
}

/// Adds the files of `module`, and of the project's modules that it imports, to the files that the program
/// sees.
fn add_modules(
    module: &str,
    python: &PythonCall,
    base: &Path,
    spot: Spot,
    command: &mut Command,
    problems: &mut Problems,
) {
    let root = base.join(&python.root);
    match imported(&root, module) {
        Ok(Some(modules)) => {
            for (name, path) in modules {
                let name = match python.root.as_str() {
                    "" => name,
                    root => format!("{root}/{name}"),
                };
                if !command.files.iter().any(|source| source.name == name) {
                    command.files.push(Source::new(name, path));
                }
            }
            command.files.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(None) => problems.add(
            spot,
            format!("there is no module `{module}` in {}", root.display()),
            format!(
                "write `{}.py` there, or name its directory by `path:`",
                module.replace('.', "/")
            ),
        ),
        Err(err) => problems.add(
            spot,
            format!("cannot read the modules of `{module}`: {err}"),
            "check the files' permissions",
        ),
    }
}

/// True for Python identifiers joined by dots.
pub(crate) fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    !text.is_empty() && text.split('.').all(is_name)
}

/// Finds the interpreter that `request` names, relative to `base`: a program on `PATH`, the path of a
/// program, or the directory of a virtual environment. Returns its tool, and completes the call of it.
pub(crate) fn find_interpreter(
    request: &Request,
    finder: &Finder<'_>,
    base: &Path,
    python: &mut PythonCall,
) -> Result<Tool, Wrong> {
    let tool = finder.python(request, base)?;
    python.program = match tool.is_environment() {
        true => "python".to_owned(),
        false => tool.link().to_owned(),
    };
    python.sites = tool.sites();
    python.packages = installed_packages(&python.sites);
    if !python.packages.contains_key("pyarrow") {
        let name = &request.name;
        let install = match tool.is_environment() {
            true => format!("{}/bin/python -m pip install pyarrow", tool.path.display()),
            false => format!(
                "create an environment beside the pipeline and name it: `python3 -m venv env`, `env/bin/pip \
                install pyarrow`, `python: ./env`; or `{} -m pip install pyarrow`",
                tool.path.display()
            ),
        };
        return Err((
            format!("the Python `{name}` has no package `pyarrow`, in which tables are handed over"),
            install,
        ));
    }
    Ok(tool)
}
