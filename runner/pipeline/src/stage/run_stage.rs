//! Resolution of a `run:` stage at a point of its matrix.

use crate::stage::command::{Command, Isolation, LOG_LIMIT, Shell, Tool};
use crate::stage::files::{self, Pattern};
use crate::stage::interpolate::{Scope, fill, fill_command, is_secret};
use crate::stage::tools::in_order;
use crate::stage::tools::{Finder, Request};
use crate::stage::written::{Program, Stage};
use crate::text::plain::is_plain_path;
use crate::text::problems::Problems;
use crate::text::suggest::suggest;
use crate::text::tree::{Value, spell};
use crate::text::units::{relative, size};
use stages_core::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// The smallest `log:` in bytes.
const LEAST_LOG: u64 = 1 << 10;

/// The command of a stage. Without `finder`, tools are not looked for.
pub(crate) fn command(
    stage: &Stage,
    written: &Program,
    scope: &Scope,
    finder: Option<&Finder<'_>>,
    base: &Path,
    problems: &mut Problems,
) -> Command {
    let needs: Vec<&str> = stage.needs.iter().map(|(key, _)| key.name.as_str()).collect();
    let names: Vec<&str> = written.outputs.iter().map(|(key, _)| key.name.as_str()).collect();
    let run = &written.run;
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut command = Command {
        command: fill_command(run, run.text().unwrap_or_default(), scope, &needs, &names, problems),
        secrets: written.secrets.clone(),
        ..Command::default()
    };
    let before = problems.count();
    for file in &written.files {
        let filled = fill(file, scope, problems);
        patterns.extend(Pattern::read(&filled, problems));
    }
    if problems.count() == before {
        command.files = files::expand(&patterns, base, problems);
    }
    command.outputs = outputs(written, scope, &command.files, problems);
    command.types = written.types.clone();
    command.env = env(written, scope, problems);
    settings(written, scope, &mut command, problems);
    if let (Some(_), Some(tool)) = (&command.container, written.tools.first()) {
        problems.add(
            tool.spot,
            "a stage with a `container` has no `tools`",
            "the image has the programs: remove one of the two",
        );
        return command;
    }
    let mut tools = Vec::new();
    for tree in &written.tools {
        let before = problems.count();
        let filled = fill(tree, scope, problems);
        if problems.count() > before {
            continue;
        }
        let Some(request) = Request::read(&filled, problems) else {
            continue;
        };
        match finder.map(|finder| finder.find(&request, base)) {
            Some(Ok(tool)) => tools.push((tool, tree.spot)),
            Some(Err((message, hint))) => problems.add(tree.spot, message, hint),
            None => {}
        }
    }
    for (i, (tool, spot)) in tools.iter().enumerate() {
        let same = |other: &Tool| match (tool.is_environment(), other.is_environment()) {
            (false, false) => tool.link() == other.link(),
            _ => tool.name == other.name,
        };
        if tools[..i].iter().any(|(other, _)| same(other)) {
            let name = tool.link();
            problems.add(*spot, format!("there are two tools `{name}`"), "remove one of them");
        }
    }
    command.tools = in_order(tools.into_iter().map(|(tool, _)| tool).collect());
    command
}

/// The file of each output.
fn outputs(
    written: &Program,
    scope: &Scope,
    files: &[Source],
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &written.outputs {
        let before = problems.count();
        let filled = fill(value, scope, problems);
        if problems.count() > before {
            continue;
        }
        let Some(file) = filled.text().and_then(relative) else {
            problems.add(
                value.spot,
                format!(
                    "the output `{}` is {}, not a file of the stage's directory",
                    key.name,
                    filled.describe()
                ),
                format!("write a relative file name without `..`, such as `{}.csv`", key.name),
            );
            continue;
        };
        if !is_plain_path(&file) {
            problems.add(
                value.spot,
                format!(
                    "the output `{}` has a character that a shell may read as a command or as a space",
                    key.name
                ),
                "write it with letters, digits and `._-+@,:=%^`, and not with `-` first",
            );
            continue;
        }
        if let Some((other, _)) = places.iter().find(|(_, known)| nested(known, &file)) {
            problems.add(
                value.spot,
                format!(
                    "the outputs `{other}` and `{}` are the same file, or one holds the other",
                    key.name
                ),
                "give each output a file of its own",
            );
            continue;
        }
        if files.iter().any(|source| nested(&source.name, &file)) {
            problems.add(
                value.spot,
                format!("the output `{}` would overwrite a file of `files:`", key.name),
                "give the output another name",
            );
            continue;
        }
        places.insert(key.name.clone(), file);
    }
    places
}

/// The variables of `env:`.
fn env(written: &Program, scope: &Scope, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (key, value) in &written.env {
        // A variable that is in `secrets:` too has an error already.
        if is_secret(&key.name) && !written.secrets.contains(&key.name) {
            problems.add(
                key.spot,
                format!(
                    "`{}` looks like a secret, and `env:` would write its value into keys and histories",
                    key.name
                ),
                format!("pass it on from outside: `secrets: [{}]`", key.name),
            );
            continue;
        }
        let before = problems.count();
        let filled = fill(value, scope, problems);
        let text = match &filled.value {
            Value::Scalar(value) => spell(value).filter(|text| !text.contains('\0')),
            Value::List(_) | Value::Map(_) => None,
        };
        match text {
            Some(text) => {
                variables.insert(key.name.clone(), text);
            }
            None if problems.count() == before => problems.add(
                value.spot,
                format!("the variable `{}` is {}, not a string", key.name, filled.describe()),
                "give it a string or a number",
            ),
            None => {}
        }
    }
    variables
}

/// Shell, isolation, network, size of the log, and container.
fn settings(written: &Program, scope: &Scope, command: &mut Command, problems: &mut Problems) {
    for (name, tree) in written.settings() {
        let before = problems.count();
        let filled = fill(tree, scope, problems);
        if problems.count() > before {
            continue;
        }
        let text = filled.text();
        let hint = match name {
            "shell" => match Shell::ALL.into_iter().find(|shell| text == Some(shell.name())) {
                Some(shell) => {
                    command.shell = shell;
                    continue;
                }
                None => suggest(text.unwrap_or_default(), "shells", Shell::ALL.map(Shell::name)),
            },
            "isolation" => match Isolation::ALL
                .into_iter()
                .find(|isolation| text == Some(isolation.name()))
            {
                Some(isolation) => {
                    command.isolation = Some(isolation);
                    continue;
                }
                None => suggest(text.unwrap_or_default(), "values", Isolation::ALL.map(Isolation::name)),
            },
            "network" => match filled.to_json().as_bool() {
                Some(network) => {
                    command.network = network;
                    continue;
                }
                None => "write `true` if the program reaches the network".to_owned(),
            },
            "log" => match text.and_then(size).filter(|bytes| *bytes >= LEAST_LOG) {
                Some(bytes) => {
                    command.log_limit = bytes;
                    continue;
                }
                None => format!(
                    "give a size with its unit, at least `1KiB`, such as `{}MiB`",
                    LOG_LIMIT >> 20
                ),
            },
            _ => match text {
                Some(image) if is_image(image) => {
                    command.container = Some(image.to_owned());
                    continue;
                }
                Some(image) if is_image(&format!("{image}@sha256:{}", "0".repeat(64))) => {
                    problems.add(
                        tree.spot,
                        format!(
                            "the image `{image}` has no digest, and a tag may name another image \
                            tomorrow"
                        ),
                        format!(
                            "write `{image}@sha256:…`: `podman image inspect --format '{{{{.Digest}}}}' \
                             {image}` prints it, or \
                             `docker image inspect --format '{{{{index .RepoDigests 0}}}}' {image}`"
                        ),
                    );
                    continue;
                }
                _ => "write it as `IMAGE@sha256:DIGEST`".to_owned(),
            },
        };
        let note = filled
            .note
            .as_ref()
            .map(|note| format!(" ({note})"))
            .unwrap_or_default();
        problems.add(tree.spot, format!("`{name}` is {}{note}", filled.describe()), hint);
    }
}

/// True for the name of an image with its digest.
fn is_image(text: &str) -> bool {
    let Some((name, digest)) = text.split_once("@sha256:") else {
        return false;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
        && digest.len() == 64
        && digest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

/// True if two relative paths are equal, or one is an ancestor of the other.
fn nested(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
