//! `uses: python` stages: a function of the user's own modules, run by an interpreter in an isolated program.
//!
//! The stage is a [`Command`] whose text is the engine's: everything that holds for programs (isolation,
//! limits, log, history) holds for it.

use crate::stage::command::{Command, PythonCall};
use crate::stage::interpolate::{Scope, fill};
use crate::stage::output_types;
use crate::stage::python_interpreter;
use crate::stage::setting::Setting;
use crate::stage::tools::in_order;
use crate::stage::tools::{Finder, Request};
use crate::stage::written::{OF_PYTHON, PythonStage, Stage, USES};
use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::tree::{Key, Tree, Value};
use crate::text::units::relative;
use serde_json::Value as Json;
use stages_core::python::imported;
use stages_core::{PortType, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// Its description, in one line.
const ABOUT: &str = "a function of one's own Python module, from tables and settings to tables";

/// The description of `uses: python` as text: its keys, which are not those of a stage kind.
pub fn describe_python() -> String {
    format!(
        "python\n{ABOUT}\n\n\
         keys besides `needs`, `matrix`, `resources`, `retries` and `timeout`\n\
         \x20 call     MODULE:FUNCTION, called with a context and, by name, the inputs and `with`\n\
         \x20 with     arguments of the function\n\
         \x20 outputs  NAME: TYPE of a table (`runner stages --type features`), or NAME: {{ path: FILE }} \
         of bytes and text\n\
         \x20 python   the interpreter: a program on PATH, or the directory of an environment with pyarrow  \
         [{INTERPRETER}]\n\
         \x20 path     the directory of its modules, relative to the pipeline  [.]\n\
         \x20 lock     the lock file of the environment\n\
         \x20 seed     `ctx.seed`  [0]\n\
         \x20 files, env, secrets, tools, network, isolation, log   as in `run:` stages\n\n\
         example\n\
         \x20 factors:\n\
         \x20   uses: python\n\
         \x20   call: my_stages:make_factors\n\
         \x20   needs: {{ bars: market }}\n\
         \x20   with: {{ window: 20 }}\n\
         \x20   outputs: {{ factors: features }}\n"
    )
}

/// The same as JSON.
pub fn python_json() -> Json {
    serde_json::json!({ "kind": USES, "about": ABOUT, "keys": OF_PYTHON })
}

/// The interpreter where none is named.
const INTERPRETER: &str = "python3";

/// The outputs: `NAME: TYPE` for a table, `NAME: { path: FILE }` for a file of bytes or text, or
/// `{ path, type }` as a program has them. A table's file is the engine's.
pub(crate) fn outputs(
    entries: Vec<(Key, Tree)>,
    problems: &mut Problems,
) -> (Vec<(Key, Tree)>, BTreeMap<String, PortType>) {
    let mut typed = Vec::new();
    let mut files = Vec::new();
    for (key, tree) in entries {
        if let (Value::Map(fields), Some((_, path))) = (&tree.value, tree.entry("path"))
            && fields.len() == 1
        {
            let path = path.clone();
            files.push((key, path));
            continue;
        }
        let spot = tree.spot;
        let entry = |name: &str, value: Tree| {
            let key = Key {
                name: name.to_owned(),
                spot,
            };
            (key, value)
        };
        let tree = match &tree.value {
            Value::Scalar(_) => Tree {
                spot,
                value: Value::Map(vec![
                    entry("path", Tree::scalar(spot, format!("outputs/{}", key.name).into())),
                    entry("type", tree),
                ]),
                note: None,
            },
            _ => tree,
        };
        typed.push((key, tree));
    }
    let (mut paths, types) = output_types::read(typed, problems);
    paths.extend(files);
    (paths, types)
}

/// Resolves the call at a point of the matrix: adds the interpreter to the tools, and the modules to the
/// files, of `command`. Without `finder`, neither is looked for.
pub(crate) fn resolve(
    stage: &Stage,
    written: &PythonStage,
    settings: &[Setting],
    scope: &Scope,
    finder: Option<&Finder<'_>>,
    base: &Path,
    command: &mut Command,
    problems: &mut Problems,
) {
    let before = problems.count();
    let Some(call) = &written.call else {
        problems.add(
            written.spot,
            "a Python stage has no `call`",
            "name the function: `call: my_stages:make_features`, in `my_stages.py` beside the pipeline",
        );
        return;
    };
    let filled = fill(call, scope, problems);
    let text = filled.text().unwrap_or_default().to_owned();
    let named = text.split_once(':');
    let Some((module, _)) = named.filter(|(module, function)| is_dotted(module) && is_dotted(function))
    else {
        if problems.count() == before {
            problems.add(
                call.spot,
                format!("`call` is {}, not MODULE:FUNCTION", filled.describe()),
                "write `call: my_stages:make_features`",
            );
        }
        return;
    };
    let mut with = fill(&written.with, scope, problems);
    for setting in settings.iter().filter(|setting| setting.stage == stage.key.name) {
        if let Err((spot, message, hint)) = setting.filled(scope, problems).apply(&mut with, &Json::Null) {
            problems.add(spot, message, hint);
        }
    }
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
                    "such a name is letters, digits and `_`",
                ),
            };
            problems.add(written.with.spot, message, hint);
        }
    }
    for (key, _) in stage.needs.iter().filter(|(key, _)| !is_dotted(&key.name)) {
        problems.add(
            key.spot,
            format!("the input `{}` cannot be the name of an argument", key.name),
            "such a name is letters, digits and `_`",
        );
    }
    let mut python = PythonCall {
        call: text.clone(),
        with,
        ..PythonCall::default()
    };
    let value =
        |tree: &Option<Tree>, problems: &mut Problems| tree.as_ref().map(|tree| fill(tree, scope, problems));
    if let Some(seed) = value(&written.seed, problems) {
        match seed.to_json().as_u64() {
            Some(seed) => python.seed = seed,
            None => problems.add(
                seed.spot,
                format!("`seed` is {}, not a whole number of 0 or more", seed.describe()),
                "write `seed: 1`",
            ),
        }
    }
    if let Some(path) = value(&written.path, problems) {
        match path
            .text()
            .map(|text| (text == ".").then(String::new).or_else(|| relative(text)))
        {
            Some(Some(root)) => python.root = root,
            _ => problems.add(
                path.spot,
                format!("`path` is {}, not a directory beside the pipeline", path.describe()),
                "name the directory of the modules, relative to the pipeline file and without `..`",
            ),
        }
    }
    let interpreter = value(&written.python, problems);
    let lock = value(&written.lock, problems);
    add_modules(module, &python, base, call.spot, command, problems);
    let spot = interpreter.as_ref().map_or(written.spot, |tree| tree.spot);
    let request = Request {
        name: interpreter
            .as_ref()
            .and_then(Tree::text)
            .unwrap_or(INTERPRETER)
            .to_owned(),
        version: None,
        lock: lock.as_ref().and_then(Tree::text).map(str::to_owned),
    };
    match finder.map(|finder| python_interpreter::find(&request, finder, base)) {
        Some(Ok(found)) => {
            python.program = found.program;
            python.packages = found.packages;
            python.sites = found.sites;
            if !command.tools.iter().any(|tool| tool.name == found.tool.name) {
                command.tools.push(found.tool);
            }
            command.tools = in_order(std::mem::take(&mut command.tools));
        }
        Some(Err((message, hint))) => problems.add(spot, message, hint),
        None => {}
    }
    command.python = Some(python);
}

/// Adds the files of `module`, and of what it imports from the project, to the files that the program sees.
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

/// True for names of Python, joined by dots.
fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    !text.is_empty() && text.split('.').all(is_name)
}
