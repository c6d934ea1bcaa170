//! The pipeline file as written: keys and names are checked, nothing is interpolated or expanded yet.

use crate::stage::output_types;
use crate::stage::written::{Job, KEYS, OF_KIND, Program, PythonStage, Stage, USES};
use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::suggest::{list, nearest, suggest};
use crate::text::tree::{Key, Tree, Value};
use crate::text::units::{is_name, is_variable};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;

/// A pipeline file.
pub(crate) struct Document {
    pub name: String,
    pub params: Vec<(Key, Tree)>,
    /// The values that each profile sets, by profile.
    pub profiles: Vec<(Key, Vec<(Key, Tree)>)>,
    /// `schedule:`
    pub schedule: Option<Tree>,
    /// `promote:`
    pub promote: Option<Tree>,
    /// `notify:`
    pub notify: Option<Tree>,
    /// `track:`
    pub track: Option<Tree>,
    pub stages: Vec<Stage>,
}

const TOP: [&str; 10] = [
    "version", "name", "include", "params", "profiles", "schedule", "promote", "notify", "track", "stages",
];
/// Reads a document. `None` if the errors prevent further checks.
pub(crate) fn read(root: Tree, file: &Path, problems: &mut Problems) -> Option<Document> {
    let spot = root.spot;
    let Value::Map(entries) = root.value else {
        return problems.fail(
            spot,
            format!("a pipeline is a map of keys, and this is {}", root.describe()),
            "a pipeline begins with `version: 1`, `name: NAME` and `stages:`",
        );
    };
    let (known, unknown): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|(key, _)| TOP.contains(&key.name.as_str()));
    // A missing key may only be misspelt.
    let mut misspelt: Vec<&str> = Vec::new();
    for (key, _) in unknown {
        let other = key.name.as_str();
        misspelt.extend(nearest(other, TOP));
        let hint = if [KEYS.common, &OF_KIND, KEYS.command].concat().contains(&other) {
            format!("`{other}` belongs to a stage: indent it below the stage's name")
        } else {
            suggest(other, "keys of a pipeline", TOP)
        };
        problems.add(key.spot, format!("unknown key `{other}`"), hint);
    }
    let mut known: BTreeMap<String, (Key, Tree)> = known
        .into_iter()
        .map(|(key, value)| (key.name.clone(), (key, value)))
        .collect();
    let mut take = |name: &str| known.remove(name).map(|(_, value)| value);
    let (version, name) = (take("version"), take("name"));
    let params = take("params").map_or_else(Vec::new, |value| named(value, "parameter", problems));
    let profiles = take("profiles").map_or_else(Vec::new, |value| named(value, "profile", problems));
    let profiles = profiles
        .into_iter()
        .map(|(key, value)| (key, map(value, "parameter", problems)))
        .collect();
    let mut block = |name: &str| take(name).filter(|value| !value.is_null());
    let [schedule, promote, notify, track] = ["schedule", "promote", "notify", "track"].map(&mut block);
    let stages = known.remove("stages");
    match version {
        None if misspelt.contains(&"version") => {}
        None => problems.add(spot, "`version` is missing", "add `version: 1` at the top"),
        Some(value) if value.to_json().as_u64() != Some(1) => problems.add(
            value.spot,
            format!("the version of the format is {}, not 1", value.describe()),
            "write `version: 1`",
        ),
        Some(_) => {}
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match name.as_ref().map(|value| (value, value.text())) {
        Some((_, Some(text))) if is_name(text) => Some(text.to_owned()),
        Some((value, _)) => problems.fail(
            value.spot,
            format!("`name` is {}", value.describe()),
            "a name is letters, digits, `_` and `-`, and begins with a letter",
        ),
        None if misspelt.contains(&"name") => None,
        None => {
            let example = if is_name(&stem) { &stem } else { "experiment" };
            problems.fail(spot, "`name` is missing", format!("add `name: {example}`"))
        }
    };
    let Some((key, value)) = stages else {
        if !misspelt.contains(&"stages") {
            problems.add(
                spot,
                "`stages` is missing",
                "add `stages:` and below it a stage: `NAME: { uses: KIND }`",
            );
        }
        return None;
    };
    let stages: Vec<Stage> = named(value, "stage", problems)
        .into_iter()
        .map(|(key, value)| stage(key, value, problems))
        .collect();
    if stages.is_empty() && !problems.any() {
        problems.add(key.spot, "there are no stages", "add one: `NAME: { uses: KIND }`");
    }
    Some(Document {
        name: name.unwrap_or_default(),
        params,
        profiles,
        schedule,
        promote,
        notify,
        track,
        stages,
    })
}

/// A map whose keys are names. A null value counts as an empty map.
fn named(tree: Tree, what: &str, problems: &mut Problems) -> Vec<(Key, Tree)> {
    let entries = map(tree, what, problems);
    for (key, _) in &entries {
        if !is_name(&key.name) {
            problems.add(
                key.spot,
                format!("`{}` cannot be the name of {} {what}", key.name, article(what)),
                "a name is letters, digits, `_` and `-`, and begins with a letter",
            );
        }
    }
    entries
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

fn map(tree: Tree, what: &str, problems: &mut Problems) -> Vec<(Key, Tree)> {
    match tree.value {
        Value::Map(entries) => entries,
        Value::Scalar(Json::Null) => Vec::new(),
        _ => {
            let described = tree.describe();
            problems.add(
                tree.spot,
                format!("expected a map from {what} to value, found {described}"),
                "write `NAME: VALUE` lines, indented, or `{ NAME: VALUE }`",
            );
            Vec::new()
        }
    }
}

fn items(tree: Tree, what: &str, problems: &mut Problems) -> Vec<Tree> {
    match tree.value {
        Value::List(items) => items,
        Value::Scalar(Json::Null) => Vec::new(),
        _ => {
            let described = tree.describe();
            problems.add(
                tree.spot,
                format!("expected a list of {what}, found {described}"),
                "write it as a list: `[a, b]`",
            );
            Vec::new()
        }
    }
}

fn stage(key: Key, tree: Tree, problems: &mut Problems) -> Stage {
    let mut stage = Stage {
        key,
        job: Job::Broken,
        needs: Vec::new(),
        matrix: Vec::new(),
        limits: Tree::map(tree.spot, Vec::new()),
        register: None,
        doubtful: false,
    };
    let name = &stage.key.name;
    let spot = tree.spot;
    let Value::Map(entries) = tree.value else {
        let described = tree.describe();
        problems.add(
            if described == "null" { stage.key.spot } else { spot },
            format!("the stage `{name}` is {described}, not a map of keys"),
            "write what it does below its name: `uses: KIND` or `run: COMMAND`",
        );
        return stage;
    };
    let mut uses = None;
    let mut run = None;
    let mut with = None;
    let mut secrets = Vec::new();
    let mut program = Box::<Program>::default();
    program.settings = Tree::map(spot, Vec::new());
    let is = |wanted: &str| entries.iter().any(|(key, _)| key.name == wanted);
    let (is_kind, is_command) = (is("uses"), is("run"));
    let is_python = entries
        .iter()
        .any(|(key, value)| key.name == "uses" && value.text() == Some(USES));
    let mut python = PythonStage {
        settings: Tree::map(spot, Vec::new()),
        ..PythonStage::default()
    };
    let either = [&OF_KIND, KEYS.command].concat();
    let (own, others) = match (is_python, is_kind, is_command) {
        (true, ..) => (&KEYS.python[..], &KEYS.command[1..]),
        (_, true, false) => (&OF_KIND[..], KEYS.command),
        (_, false, true) => (KEYS.command, &KEYS.python[..]),
        _ => (&either[..], &[][..]),
    };
    for (key, value) in entries {
        let is_own = KEYS.common.iter().chain(own).any(|known| *known == key.name);
        match key.name.as_str() {
            other if !is_own && others.contains(&other) => {
                let hint = match other {
                    "with" => "a command takes its settings in its text: `run: python x.py ${params.X}`",
                    _ if is_python => {
                        "a Python stage runs its function: remove it, or make this a `run:` stage"
                    }
                    "call" | "python" | "path" | "lock" | "seed" => "write `uses: python` in place of `run:`",
                    "outputs" => "the outputs of a stage kind are fixed: see `runner stages KIND`",
                    _ => "remove it, or make this a `run:` stage",
                };
                let (belongs, is) = if is_kind { ("run", "uses") } else { ("uses", "run") };
                let message =
                    format!("`{other}` is for `{belongs}:` stages, and `{name}` is a `{is}:` stage");
                problems.add(key.spot, message, hint);
            }
            "uses" => uses = Some((key, value)),
            "run" => run = Some((key, value)),
            other if !is_own => {
                let own = if is_python || is_command { own } else { &OF_KIND };
                let all = [KEYS.common, own].concat();
                let hint = match nearest(other, all.iter().copied())
                    .or_else(|| nearest(other, either.iter().copied()))
                {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if is_kind => format!(
                        "settings of the kind belong below `with:`; a stage's keys are {}",
                        list(all)
                    ),
                    None => format!("a stage's keys are {}", list(all)),
                };
                stage.doubtful |= hint.contains("`needs`?");
                problems.add(key.spot, format!("unknown key `{other}` in the stage `{name}`"), hint);
            }
            "with" => with = Some((key, value)),
            "needs" => {
                let before = problems.count();
                stage.needs = named(value, "port", problems);
                stage.doubtful |= problems.count() > before;
            }
            "matrix" => stage.matrix = named(value, "axis", problems),
            "register" => stage.register = Some(value),
            "outputs" => {
                let entries = named(value, "output", problems);
                (program.outputs, program.types) = output_types::read(entries, is_python, problems);
            }
            "env" => program.env = variables(value, problems),
            "secrets" => secrets = items(value, "names of environment variables", problems),
            "resources" | "files" | "tools" if value.is_null() => {}
            "resources" | "retries" | "timeout" => stage.limits.push(key, value),
            known if KEYS.command.contains(&known) => program.settings.push(key, value),
            _ => python.settings.push(key, value),
        }
    }
    stage.job = match (uses, run) {
        (Some((key, _)), Some(_)) => {
            problems.add(
                key.spot,
                format!("the stage `{name}` has both `uses` and `run`"),
                "keep one of them, and make the other a stage of its own",
            );
            Job::Broken
        }
        (None, None) => {
            problems.add(
                stage.key.spot,
                format!("the stage `{name}` has neither `uses` nor `run`"),
                "add `uses: KIND` (see `runner stages`) or `run: COMMAND`",
            );
            Job::Broken
        }
        (Some((key, value)), None) if is_python => {
            python.spot = value.spot;
            python.with = settings(with, key.spot, problems);
            program.secrets = names_of_secrets(&secrets, &program.env, problems);
            program.python = Some(python);
            Job::Command(program)
        }
        (Some((key, value)), None) => match value.text() {
            Some(text) => Job::Kind {
                name: text.to_owned(),
                spot: value.spot,
                with: settings(with, key.spot, problems),
            },
            None => {
                problems.add(
                    value.spot,
                    format!("`uses` is {}, not the name of a stage kind", value.describe()),
                    "write a name such as `train/ppo`; `runner stages` lists them",
                );
                Job::Broken
            }
        },
        (None, Some((_, run))) => {
            if run.text().is_none_or(|text| text.trim().is_empty()) {
                problems.add(
                    run.spot,
                    format!("`run` is {}, not a command", run.describe()),
                    "write one text for the shell; several lines go below `run: |`",
                );
                Job::Broken
            } else {
                program.run = run;
                program.secrets = names_of_secrets(&secrets, &program.env, problems);
                Job::Command(program)
            }
        }
    };
    stage
}

/// `with:`; an empty map if absent or null.
fn settings(with: Option<(Key, Tree)>, otherwise: Spot, problems: &mut Problems) -> Tree {
    let empty = |spot| Tree::map(spot, Vec::new());
    match with {
        None => empty(otherwise),
        Some((key, value)) => match value.value {
            Value::Map(_) => value,
            Value::Scalar(Json::Null) => empty(key.spot),
            _ => {
                problems.add(
                    value.spot,
                    format!("`with` is {}, not a map of settings", value.describe()),
                    "write `KEY: VALUE` lines, indented, or `{ KEY: VALUE }`",
                );
                empty(key.spot)
            }
        },
    }
}

fn variables(tree: Tree, problems: &mut Problems) -> Vec<(Key, Tree)> {
    let entries = map(tree, "variable", problems);
    for (key, _) in entries.iter().filter(|(key, _)| !is_variable(&key.name)) {
        problems.add(
            key.spot,
            format!("`{}` cannot be the name of an environment variable", key.name),
            "such a name is letters, digits and `_`, and does not begin with a digit",
        );
    }
    entries
}

fn names_of_secrets(secrets: &[Tree], env: &[(Key, Tree)], problems: &mut Problems) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for secret in secrets {
        match secret.text() {
            Some(name) if is_variable(name) => {
                if env.iter().any(|(key, _)| key.name == name) {
                    problems.add(
                        secret.spot,
                        format!("`{name}` is both in `env` and in `secrets`"),
                        "a variable of `env` is part of the key, one of `secrets` is not: keep one",
                    );
                    names.push(name.to_owned());
                } else if names.iter().any(|known| known == name) {
                    problems.add(secret.spot, format!("`{name}` is listed twice"), "remove one");
                } else {
                    names.push(name.to_owned());
                }
            }
            _ => problems.add(
                secret.spot,
                format!("{} is not the name of an environment variable", secret.describe()),
                "list the names of the variables to pass on, not their values",
            ),
        }
    }
    names
}
