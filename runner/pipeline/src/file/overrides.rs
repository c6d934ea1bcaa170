//! `--set NAME=VALUE`, `--set STAGE.with.KEY=VALUE` and `--set STAGE.needs.PORT=VALUE`; and profiles, which
//! can set the same names.

use crate::file::document::Document;
use crate::file::meant::meant;
use crate::stage::{Given, Setting};
use crate::text::{Key, Problems, Spot, Step, Texts, Tree, Value, is_name, steps, suggest};
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
    night: OfNight,
    document: &mut Document,
    problems: &mut Problems,
) -> Vec<Setting> {
    let known = std::mem::take(&mut document.profiles);
    let mut overrides = Overrides {
        document,
        settings: Vec::new(),
        problems,
    };
    for (_, entries) in known.iter().filter(|(key, _)| !profiles.contains(&key.name)) {
        overrides.set_all(entries, false);
    }
    for (i, name) in profiles.iter().enumerate() {
        match known.iter().find(|(key, _)| key.name == *name) {
            Some((_, entries)) => overrides.set_all(entries, true),
            None => overrides.problems.add(
                Spot::whole(arguments.len() + i + 1, name),
                format!("the pipeline has no profile `{name}`"),
                suggest(name, "profiles", known.iter().map(|(key, _)| key.name.as_str())),
            ),
        }
    }
    overrides.set_all(&night.values, night.is_set);
    for (i, argument) in arguments.iter().enumerate() {
        let whole = Spot::whole(i + 1, argument);
        let Some((name, text)) = name_and_value(argument) else {
            overrides.problems.add(
                whole,
                format!("`{argument}` sets nothing"),
                without_value(argument, overrides.document),
            );
            continue;
        };
        let before = name.chars().count();
        let mut spot = Spot::whole(i + 1, text);
        spot.place.column = before + 2;
        let at = Spot {
            width: before.max(1),
            ..whole
        };
        overrides.set(name, at, Given::Text(text.to_owned()), spot, true);
    }
    overrides.settings
}

/// Splits at the first `=` outside of brackets, which may hold the point of a matrix.
fn name_and_value(argument: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let at = argument.char_indices().find(|(_, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *c == '=' && depth == 0
    });
    let (at, _) = at?;
    Some((&argument[..at], &argument[at + 1..]))
}

/// The hint for an argument without `=`: the value may follow a colon or a space.
fn without_value(argument: &str, document: &Document) -> String {
    let (name, value) = argument.split_once([':', ' ']).unwrap_or((argument, "VALUE"));
    match meant(name, document) {
        Some(name) => format!("write `--set {name}={}`", value.trim()),
        None => "write `--set NAME=VALUE` or `--set STAGE.with.KEY=VALUE`".to_owned(),
    }
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
    /// The inputs of a stage at a port: the index of the stage, and the port.
    Need(usize, String),
}

/// A document, and what `--set`, profiles and a night change in it.
struct Overrides<'d> {
    document: &'d mut Document,
    settings: Vec<Setting>,
    problems: &'d mut Problems,
}

impl Overrides<'_> {
    /// Sets each of the values that a profile or a night names; they are only checked unless `is_set`.
    fn set_all(&mut self, entries: &[(Key, Tree)], is_set: bool) {
        for (key, value) in entries {
            self.set(&key.name, key.spot, Given::Tree(value.clone()), value.spot, is_set);
        }
    }

    /// Sets a parameter, or records a setting of a stage; only checks it unless `is_set`.
    fn set(&mut self, name: &str, at: Spot, given: Given, spot: Spot, is_set: bool) {
        match self.find(name, at, &given) {
            Some(Target::Param(index)) => {
                let (key, old) = &mut self.document.params[index];
                match given.read(spot, &old.value, true) {
                    Ok(new) if is_set => *old = new,
                    Ok(_) => {}
                    Err((message, hint)) => {
                        self.problems.add(spot, format!("`{}`: {message}", key.name), hint);
                    }
                }
            }
            Some(Target::Field { stage, path, rest }) if is_set => self.settings.push(Setting {
                stage,
                path,
                name: Key { name: rest, spot: at },
                value: given,
                spot,
            }),
            Some(Target::Need(stage, port)) => {
                let needs = &mut self.document.stages[stage].needs;
                match given.read(spot, &Value::Scalar(Json::Null), false) {
                    Ok(_) if !is_set => {}
                    Ok(new) => match needs.iter_mut().find(|(key, _)| key.name == port) {
                        Some((_, old)) => *old = new,
                        None => needs.push((Key { name: port, spot: at }, new)),
                    },
                    Err((message, hint)) => self.problems.add(spot, format!("`{name}`: {message}"), hint),
                }
            }
            Some(Target::Field { .. }) | None => {}
        }
    }

    fn find(&mut self, name: &str, at: Spot, given: &Given) -> Option<Target> {
        let Document { params, stages, .. } = &*self.document;
        let written = |name: String| match given {
            Given::Text(text) => format!("write `--set {name}={text}`"),
            Given::Tree(_) => format!("write `{name}`"),
        };
        let meant = || meant(name, self.document).filter(|meant| meant != name).map(written);
        let Some((stage, rest)) = name.split_once('.') else {
            let known = params.iter().position(|(key, _)| key.name == name);
            if known.is_none() {
                let hint = match stages.iter().find(|stage| stage.key.name == name) {
                    Some(_) => format!("`{name}` is a stage: write `{name}.with.KEY`"),
                    None => {
                        let near =
                            suggest(name, "parameters", params.iter().map(|(key, _)| key.name.as_str()));
                        let is_near = near.starts_with("did you mean");
                        meant().filter(|_| !is_near).unwrap_or(near)
                    }
                };
                let message = format!("the pipeline has no parameter `{name}`");
                self.problems.add(at, message, hint);
            }
            return known.map(Target::Param);
        };
        let at_stage = stages.iter().position(|known| known.key.name == stage);
        let Some((index, found)) = at_stage.map(|index| (index, &stages[index])) else {
            let names = stages.iter().map(|stage| stage.key.name.as_str());
            let message = format!("the pipeline has no stage `{stage}`");
            let hint = meant().unwrap_or_else(|| suggest(stage, "stages", names));
            return self.problems.fail(at, message, hint);
        };
        if let Some(port) = rest.strip_prefix("needs.").filter(|port| is_name(port)) {
            return Some(Target::Need(index, port.to_owned()));
        }
        let is_empty = |step: &Step| step.key().is_some_and(str::is_empty);
        let path = rest.strip_prefix("with.").map(steps).filter(|path| {
            path.first().is_some_and(|step| step.key().is_some()) && !path.iter().any(is_empty)
        });
        let Some(path) = path else {
            let forms = || format!("write `{stage}.with.KEY`, or `{stage}.needs.PORT`");
            let hint = meant().unwrap_or_else(forms);
            return self.problems.fail(at, format!("`{name}` cannot be set"), hint);
        };
        if found.program().is_some_and(|program| program.run.is_some()) {
            return self.problems.fail(
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
}
