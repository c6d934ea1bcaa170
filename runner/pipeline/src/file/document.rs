//! The pipeline file as written: keys and names are checked, nothing is interpolated or expanded yet.

use crate::file::compose::check_version;
use crate::stage::{Job, KEYS, OF_KIND, Program, Stage, USES, output_types};
use crate::text::{Key, Problems, Spot, Tree, Value, is_name, is_variable, list, nearest, suggest};
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
    /// `search:`
    pub search: Option<Tree>,
    pub stages: Vec<Stage>,
}

const TOP: [&str; 11] = [
    "version", "name", "include", "params", "profiles", "schedule", "promote", "notify", "track", "search",
    "stages",
];

/// Reads a document. `None` if the errors prevent further checks. `is_package` tells whether a kind is one
/// that an installed package may bring.
pub(crate) fn read(
    root: Tree,
    file: &Path,
    is_package: &dyn Fn(&str) -> bool,
    problems: &mut Problems,
) -> Option<Document> {
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
    let [schedule, promote, notify, track, search] =
        ["schedule", "promote", "notify", "track", "search"].map(&mut block);
    let stages = known.remove("stages");
    match version {
        None if misspelt.contains(&"version") => {}
        None => problems.add(spot, "`version` is missing", "add `version: 1` at the top"),
        Some(value) => check_version(&value, problems),
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match name.as_ref().map(|value| (value, value.text())) {
        Some((_, Some(text))) if is_name(text) => Some(text.to_owned()),
        Some((value, _)) => problems.fail(
            value.spot,
            format!("`name` is {}", value.describe()),
            "a name consists of letters, digits, `_` and `-`, and begins with a letter",
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
        .map(|(key, value)| stage(key, value, is_package, problems))
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
        search,
        stages,
    })
}

/// A map whose keys are names. A null value counts as an empty map.
fn named(tree: Tree, what: &str, problems: &mut Problems) -> Vec<(Key, Tree)> {
    let (is_valid, what_of, hint): (fn(&str) -> bool, _, _) = match what {
        "variable" => (
            is_variable,
            "an environment variable".to_owned(),
            "such a name consists of letters, digits and `_`, and does not begin with a digit",
        ),
        _ => {
            let article = if what.starts_with(['a', 'o']) { "an" } else { "a" };
            let hint = "a name consists of letters, digits, `_` and `-`, and begins with a letter";
            (is_name, format!("{article} {what}"), hint)
        }
    };
    let entries = map(tree, what, problems);
    for (key, _) in entries.iter().filter(|(key, _)| !is_valid(&key.name)) {
        let message = format!("`{}` cannot be the name of {what_of}", key.name);
        problems.add(key.spot, message, hint);
    }
    entries
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

fn stage(key: Key, tree: Tree, is_package: &dyn Fn(&str) -> bool, problems: &mut Problems) -> Stage {
    let spot = tree.spot;
    let empty = |spot| Tree::map(spot, Vec::new());
    let mut stage = Stage {
        uses: key.spot,
        key,
        job: Job::Broken,
        with: empty(spot),
        needs: Vec::new(),
        matrix: Vec::new(),
        register: None,
        settings: empty(spot),
        doubtful: false,
    };
    let name = &stage.key.name;
    let Value::Map(entries) = tree.value else {
        let described = tree.describe();
        problems.add(
            if described == "null" { stage.key.spot } else { spot },
            format!("the stage `{name}` is {described}, not a map of keys"),
            "write what it does below its name: `uses: KIND` or `run: COMMAND`",
        );
        return stage;
    };
    let mut secrets = Vec::new();
    let mut program = Box::<Program>::default();
    let is = |wanted: &str| entries.iter().any(|(key, _)| key.name == wanted);
    let (is_kind, is_command) = (is("uses"), is("run"));
    let uses = |test: &dyn Fn(&str) -> bool| {
        let mut values = entries.iter().filter(|(key, _)| key.name == "uses");
        values.any(|(_, value)| value.text().is_some_and(test))
    };
    let is_python = uses(&|kind| kind == USES);
    let is_package = uses(is_package);
    let either = [&OF_KIND, KEYS.command].concat();
    let (own, others) = match (is_python, is_kind, is_command) {
        (true, ..) => (&KEYS.python[..], &KEYS.command[1..]),
        (_, true, false) if is_package => (&KEYS.package[..], KEYS.command),
        (_, true, false) => (&OF_KIND[..], KEYS.command),
        (_, false, true) => (KEYS.command, &KEYS.python[..]),
        _ => (&either[..], &[][..]),
    };
    let (mut uses, mut run, mut with) = (None, None, None);
    for (key, value) in entries {
        let is_own = KEYS.common.iter().chain(own).any(|known| *known == key.name);
        match key.name.as_str() {
            other if !is_own && others.contains(&other) => {
                let hint = match other {
                    "with" => "a command takes its settings in its text: `run: python x.py ${params.X}`",
                    _ if is_python => {
                        "a Python stage runs its function: remove it, or make this a `run:` stage"
                    }
                    "call" | "python" | "path" | "lock" | "seed" | "check" => {
                        "write `uses: python` in place of `run:`"
                    }
                    "outputs" => "the outputs of a stage kind are fixed: see `runner stages KIND`",
                    _ => "remove it, or make this a `run:` stage",
                };
                let (belongs, is) = if is_kind { ("run", "uses") } else { ("uses", "run") };
                let message =
                    format!("`{other}` is for `{belongs}:` stages, and `{name}` is a `{is}:` stage");
                problems.add(key.spot, message, hint);
            }
            "uses" => uses = Some((key, value)),
            "run" => run = Some(value),
            other if !is_own => {
                let own = if is_python || is_command || is_package {
                    own
                } else {
                    &OF_KIND
                };
                let all = [KEYS.common, own].concat();
                let near = nearest(other, all.iter().copied());
                let hint = match near.or_else(|| nearest(other, either.iter().copied())) {
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
            "with" => {
                with = match value.value {
                    Value::Map(_) => Some(value),
                    Value::Scalar(Json::Null) => Some(empty(key.spot)),
                    _ => problems.fail(
                        value.spot,
                        format!("`with` is {}, not a map of settings", value.describe()),
                        "write `KEY: VALUE` lines, indented, or `{ KEY: VALUE }`",
                    ),
                }
            }
            "needs" => {
                let before = problems.count();
                stage.needs = named(value, "port", problems);
                stage.doubtful |= problems.count() > before;
            }
            "matrix" => stage.matrix = named(value, "axis", problems),
            "outputs" => {
                program.outputs = output_types::read(named(value, "output", problems), is_python, problems)
            }
            "env" => program.env = named(value, "variable", problems),
            "secrets" => secrets = items(value, "names of environment variables", problems),
            "register" => stage.register = Some(value),
            "resources" | "files" | "tools" if value.is_null() => {}
            _ => stage.settings.push(key, value),
        }
    }
    if let Some((key, value)) = &uses {
        stage.uses = value.spot;
        stage.with.spot = key.spot;
    }
    stage.with = with.unwrap_or(stage.with);
    program.secrets = names_of_secrets(&secrets, &program.env, problems);
    stage.job = match (uses, run) {
        (Some((key, _)), Some(_)) => broken(
            key.spot,
            format!("the stage `{name}` has both `uses` and `run`"),
            "keep one of them, and make the other a stage of its own",
            problems,
        ),
        (None, None) => broken(
            stage.key.spot,
            format!("the stage `{name}` has neither `uses` nor `run`"),
            "add `uses: KIND` (see `runner stages`) or `run: COMMAND`",
            problems,
        ),
        (Some((_, value)), None) => match value.text() {
            Some(USES) => Job::Program(program),
            Some(text) if is_package => Job::Package(text.to_owned(), program),
            Some(text) => Job::Kind(text.to_owned()),
            None => broken(
                value.spot,
                format!("`uses` is {}, not the name of a stage kind", value.describe()),
                "write a name such as `train/ppo`; `runner stages` lists them",
                problems,
            ),
        },
        (None, Some(run)) if run.text().is_none_or(|text| text.trim().is_empty()) => broken(
            run.spot,
            format!("`run` is {}, not a command", run.describe()),
            "write one text for the shell; several lines go below `run: |`",
            problems,
        ),
        (None, Some(run)) => {
            program.run = Some(run);
            Job::Program(program)
        }
    };
    stage
}

/// Reports an error of a stage that makes its work unknown.
fn broken(spot: Spot, message: String, hint: &str, problems: &mut Problems) -> Job {
    problems.add(spot, message, hint);
    Job::Broken
}

fn names_of_secrets(secrets: &[Tree], env: &[(Key, Tree)], problems: &mut Problems) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for secret in secrets {
        let Some(name) = secret.text().filter(|name| is_variable(name)) else {
            problems.add(
                secret.spot,
                format!("{} is not the name of an environment variable", secret.describe()),
                "list the names of the variables to pass on, not their values",
            );
            continue;
        };
        if env.iter().any(|(key, _)| key.name == name) {
            problems.add(
                secret.spot,
                format!("`{name}` is both in `env` and in `secrets`"),
                "a variable of `env` is part of the key, one of `secrets` is not: keep one",
            );
        } else if names.iter().any(|known| known == name) {
            problems.add(secret.spot, format!("`{name}` is listed twice"), "remove one");
        }
        names.push(name.to_owned());
    }
    names
}
