//! `--set NAME=VALUE` and `--set STAGE.with.KEY=VALUE`; and profiles, which can set the same names.

use crate::Place;
use crate::file::document::Document;
use crate::stage::{Given, Setting, Strictness};
use crate::text::{Key, Problems, Spot, Step, Texts, Tree, Value, steps, suggest};
use serde_json::Value as Json;

/// Adds the arguments to the texts that errors refer to: first those of `--set`, then those of `--profile`.
pub(crate) fn texts(texts: &mut Texts, arguments: &[String], profiles: &[String]) {
    for argument in arguments {
        texts.push_argument("--set", argument.clone());
    }
    for profile in profiles {
        texts.push_argument("--profile", profile.clone());
    }
}

/// The values that the schedule sets in a night, named as by `--set`.
pub(crate) struct OfNight {
    /// True if a night is run; otherwise the values are only checked.
    pub is_set: bool,
    /// The values, without interpolations.
    pub values: Vec<(Key, Tree)>,
}

/// Replaces parameters, and returns the settings of the stages' configurations. The selected profiles apply
/// first, in the order of the arguments; the values of a night override them, and `--set` overrides both.
/// Profiles that are not selected are checked too.
pub(crate) fn apply(
    arguments: &[String],
    profiles: &[String],
    of_night: OfNight,
    document: &mut Document,
    problems: &mut Problems,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    let known = std::mem::take(&mut document.profiles);
    for (_, entries) in known.iter().filter(|(key, _)| !profiles.contains(&key.name)) {
        for (key, value) in entries {
            find(&key.name, key.spot, document, problems).and_then(|target| {
                replacement(&target, &Given::Tree(value.clone()), value.spot, document, problems)
            });
        }
    }
    for (i, name) in profiles.iter().enumerate() {
        let Some((_, entries)) = known.iter().find(|(key, _)| key.name == *name) else {
            problems.add(
                Spot::whole(arguments.len() + i + 1, name),
                format!("the pipeline has no profile `{name}`"),
                suggest(name, "profiles", known.iter().map(|(key, _)| key.name.as_str())),
            );
            continue;
        };
        for (key, value) in entries {
            let given = Given::Tree(value.clone());
            set(
                &key.name,
                key.spot,
                given,
                value.spot,
                document,
                &mut settings,
                problems,
            );
        }
    }
    for (key, value) in of_night.values {
        let (spot, given) = (value.spot, Given::Tree(value));
        if of_night.is_set {
            set(&key.name, key.spot, given, spot, document, &mut settings, problems);
        } else {
            find(&key.name, key.spot, document, problems)
                .and_then(|target| replacement(&target, &given, spot, document, problems));
        }
    }
    for (i, argument) in arguments.iter().enumerate() {
        let whole = Spot::whole(i + 1, argument);
        let Some((name, text)) = argument.split_once('=') else {
            problems.add(
                whole,
                format!("`{argument}` sets nothing"),
                "write `--set NAME=VALUE` or `--set STAGE.with.KEY=VALUE`",
            );
            continue;
        };
        let before = name.chars().count();
        let spot = Spot {
            text: i + 1,
            place: Place {
                line: 1,
                column: before + 2,
            },
            width: text.chars().count().max(1),
        };
        let at = Spot {
            width: before.max(1),
            ..whole
        };
        let given = Given::Text(text.to_owned());
        set(name, at, given, spot, document, &mut settings, problems);
    }
    settings
}

/// Removes from `schedule: { params: … }` the values that `--set` replaces in every night, and applies the
/// changes that `--set` makes within these values.
pub(crate) fn fix_schedule(arguments: &[String], settings: &[Setting], document: &mut Document) {
    let Some(Value::Map(schedule)) = document.schedule.as_mut().map(|tree| &mut tree.value) else {
        return;
    };
    let Some((
        _,
        Tree {
            value: Value::Map(params),
            ..
        },
    )) = schedule.iter_mut().find(|(key, _)| key.name == "params")
    else {
        return;
    };
    let is_argument = |name: &str| {
        arguments
            .iter()
            .any(|argument| argument.split_once('=').is_some_and(|(set, _)| set == name))
    };
    let settings: Vec<&Setting> = settings
        .iter()
        .filter(|setting| matches!(setting.value, Given::Text(_)))
        .collect();
    params.retain_mut(|(key, value)| {
        let Some((stage, path)) = key.name.split_once(".with.") else {
            return !is_argument(&key.name);
        };
        let path = steps(path);
        for setting in settings.iter().filter(|setting| setting.stage == stage) {
            if path.starts_with(&setting.path) {
                return false;
            }
            if let Some(rest) = setting.path.strip_prefix(&*path) {
                // The setting is valid: the pipeline was loaded with it.
                let _ = setting.within(rest).apply(value, &Json::Null);
            }
        }
        true
    });
    if params.is_empty() {
        schedule.retain(|(key, _)| key.name != "params");
    }
}

/// The target of a name given to `--set`.
enum Target {
    /// The index of a parameter.
    Param(usize),
    /// A field of a stage's configuration.
    Field {
        stage: String,
        path: Vec<Step>,
        rest: String,
    },
}

/// Sets a parameter, or records a setting of a stage.
fn set(
    name: &str,
    at: Spot,
    given: Given,
    spot: Spot,
    document: &mut Document,
    settings: &mut Vec<Setting>,
    problems: &mut Problems,
) {
    let Some(target) = find(name, at, document, problems) else {
        return;
    };
    let new = replacement(&target, &given, spot, document, problems);
    match target {
        Target::Param(index) => {
            if let (Some(new), Some((_, value))) = (new, document.params.get_mut(index)) {
                *value = new;
            }
        }
        Target::Field { stage, path, rest } => settings.push(Setting {
            stage,
            path,
            name: Key { name: rest, spot: at },
            value: given,
            spot,
        }),
    }
}

/// The new value of a parameter, if its type matches the old one.
fn replacement(
    target: &Target,
    given: &Given,
    spot: Spot,
    document: &Document,
    problems: &mut Problems,
) -> Option<Tree> {
    let Target::Param(index) = target else { return None };
    let (key, old) = document.params.get(*index)?;
    let new = given
        .read(spot, &old.value, Strictness::Exact)
        .map_err(|(message, hint)| problems.add(spot, format!("`{}`: {message}", key.name), hint));
    new.ok()
}

fn find(name: &str, at: Spot, document: &Document, problems: &mut Problems) -> Option<Target> {
    let Some((stage, rest)) = name.split_once('.') else {
        let known = document.params.iter().position(|(key, _)| key.name == name);
        if known.is_none() {
            let hint = match document.stages.iter().find(|stage| stage.key.name == name) {
                Some(_) => format!("`{name}` is a stage: write `{name}.with.KEY`"),
                None => suggest(
                    name,
                    "parameters",
                    document.params.iter().map(|(key, _)| key.name.as_str()),
                ),
            };
            problems.add(at, format!("the pipeline has no parameter `{name}`"), hint);
        }
        return known.map(Target::Param);
    };
    let Some(found) = document.stages.iter().find(|known| known.key.name == stage) else {
        let names = document.stages.iter().map(|stage| stage.key.name.as_str());
        return problems.fail(
            at,
            format!("the pipeline has no stage `{stage}`"),
            suggest(stage, "stages", names),
        );
    };
    let path = rest.strip_prefix("with.").map(steps).filter(|path| {
        matches!(path.first(), Some(Step::Key(_)))
            && path
                .iter()
                .all(|step| !matches!(step, Step::Key(name) if name.is_empty()))
    });
    let Some(path) = path else {
        return problems.fail(
            at,
            format!("`{name}` cannot be set"),
            format!("only parameters and configurations can: write `{stage}.with.KEY`"),
        );
    };
    if found.program().is_some_and(|program| program.run.is_some()) {
        return problems.fail(
            at,
            format!("`{stage}` is a `run:` stage and has no `with:`"),
            "let its command read a parameter, and set that",
        );
    }
    Some(Target::Field {
        stage: stage.to_owned(),
        path,
        rest: rest.to_owned(),
    })
}
