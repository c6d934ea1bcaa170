//! Resolution of a `run:` stage at a point of its matrix.

use crate::stage::command::{Command, Isolation, Shell, Tool};
use crate::stage::files::{self, Pattern};
use crate::stage::interpolate::{Scope, fill, fill_command, is_secret};
use crate::stage::tools::{Finder, Request, RequestForm, in_order};
use crate::stage::written::{Output, Program, Stage};
use crate::text::{
    Problems, Size, Text, Value, Written, is_plain_path, or_interpolation, relative, size, spell,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stages_core::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// The keys of a `run:` stage; the settings are read at each point.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    #[schemars(skip)]
    run: IgnoredAny,
    #[schemars(skip)]
    outputs: IgnoredAny,
    /// Files that the command reads, of the pipeline's directory or by URL: part of its key. Patterns and
    /// directories are expanded.
    #[schemars(with = "Option<Vec<Pattern>>")]
    files: Vec<Pattern>,
    #[schemars(skip)]
    env: IgnoredAny,
    #[schemars(skip)]
    secrets: IgnoredAny,
    /// Programs that the command runs besides the system's utilities: part of its key.
    #[schemars(with = "Option<Vec<RequestForm>>")]
    tools: Vec<Request>,
    /// If true, the command reaches the network: part of its key.
    #[schemars(extend("default" = false), transform = or_interpolation)]
    network: bool,
    /// The shell: `bash -euo pipefail` or `sh -e`. Part of its key.
    #[schemars(extend("default" = "bash"), transform = or_interpolation)]
    shell: Shell,
    /// The isolation that it asks for; `required` fails without namespaces.
    #[schemars(extend("default" = "auto"), transform = or_interpolation)]
    isolation: Option<Isolation>,
    /// The size of its log, of which the first and the last half are kept, such as `64MiB`.
    log: Option<Text<LogSize>>,
    /// The image that it runs in, by podman or docker: part of its key.
    container: Option<Text<Image>>,
}

/// The size of a log in bytes.
struct LogSize(u64);

impl Written for LogSize {
    const PATTERN: Option<&'static str> = Size::PATTERN;

    fn read(text: &str) -> Result<Self, String> {
        size(text)
            .filter(|bytes| *bytes >= 1 << 10)
            .map(Self)
            .ok_or_else(String::new)
    }
}

/// The name of a container image with its digest.
struct Image(String);

impl Written for Image {
    const PATTERN: Option<&'static str> = Some("^[A-Za-z0-9][A-Za-z0-9._/:-]*@sha256:[0-9a-f]{64}$");

    fn read(text: &str) -> Result<Self, String> {
        if is_image(text) {
            return Ok(Self(text.to_owned()));
        }
        match is_image(&format!("{text}@sha256:{}", "0".repeat(64))) {
            true => Err(format!(
                "the image `{text}` has no digest, and a tag may name another image tomorrow\n\
                write `{text}@sha256:…`: `podman image inspect --format '{{{{.Digest}}}}' {text}` prints it, or \
                `docker image inspect --format '{{{{index .RepoDigests 0}}}}' {text}`"
            )),
            false => Err(String::new()),
        }
    }
}

/// Resolves the command of a stage. Without `finder`, tools are not looked up.
pub(crate) fn command(
    stage: &Stage,
    program: &Program,
    scope: &Scope,
    finder: Option<&Finder<'_>>,
    base: &Path,
    problems: &mut Problems,
) -> Command {
    let text = match &program.run {
        Some(run) => fill_command(run, scope, &stage.inputs(), &program.names(), problems),
        None => String::new(),
    };
    let settings: Option<Settings> = stage.read("run", scope, problems);
    let is_sound = settings.is_some();
    let settings = settings.unwrap_or_default();
    let at = |key: &str| stage.settings.entry(key).map_or(&[][..], |(_, value)| value.items());
    let files = match is_sound {
        true => files::expand(&settings.files, at("files"), base, problems),
        false => Vec::new(),
    };
    let types = program.outputs.iter();
    let mut command = Command {
        command: text,
        outputs: outputs(program, scope, &files, problems),
        types: types
            .filter_map(|output| Some((output.key.name.clone(), output.ty?)))
            .collect(),
        env: env(program, scope, problems),
        files,
        secrets: program.secrets.clone(),
        shell: settings.shell,
        isolation: settings.isolation,
        network: settings.network,
        container: settings.container.map(|Text(Image(name))| name),
        log_limit: settings.log.map(|Text(LogSize(bytes))| bytes),
        ..Command::default()
    };
    if let (Some(_), Some(tool)) = (&command.container, at("tools").first()) {
        problems.add(
            tool.spot,
            "a stage with a `container` has no `tools`",
            "the image has the programs: remove one of the two",
        );
        return command;
    }
    let mut tools: Vec<Tool> = Vec::new();
    for (i, request) in settings.tools.iter().enumerate() {
        let spot = files::spot_of(at("tools"), i);
        let tool = match finder.map(|finder| finder.find(request, base)) {
            Some(Ok(tool)) => tool,
            Some(Err((message, hint))) => {
                problems.add(spot, message, hint);
                continue;
            }
            None => continue,
        };
        let same = |other: &Tool| match (tool.is_environment(), other.is_environment()) {
            (false, false) => tool.link() == other.link(),
            _ => tool.name == other.name,
        };
        if tools.iter().any(same) {
            let message = format!("there are two tools `{}`", tool.link());
            problems.add(spot, message, "remove one of them");
        }
        tools.push(tool);
    }
    command.tools = in_order(tools);
    command
}

/// The file of each output, by the output's name.
fn outputs(
    program: &Program,
    scope: &Scope,
    files: &[Source],
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for Output { key, path, .. } in &program.outputs {
        let (name, before) = (&key.name, problems.count());
        let filled = fill(path, scope, problems);
        if problems.count() > before {
            continue;
        }
        let (message, hint) = match filled.text().and_then(relative) {
            None => (
                format!(
                    "the output `{name}` is {}, not a file of the stage's directory",
                    filled.describe()
                ),
                &*format!("write a relative file name without `..`, such as `{name}.csv`"),
            ),
            Some(file) if !is_plain_path(&file) => (
                format!(
                    "the output `{name}` has a character that a shell may read as a command or as a space"
                ),
                "write it with letters, digits and `._-+@,:=%^`, and not with `-` first",
            ),
            Some(file) => {
                let other = places.iter().find(|(_, known)| nested(known, &file));
                match (other, files.iter().any(|source| nested(&source.name, &file))) {
                    (Some((other, _)), _) => (
                        format!(
                            "the outputs `{other}` and `{name}` are the same file, or one contains the other"
                        ),
                        "give each output a file of its own",
                    ),
                    (None, true) => (
                        format!("the output `{name}` would overwrite a file of `files:`"),
                        "give the output another name",
                    ),
                    (None, false) => {
                        places.insert(name.clone(), file);
                        continue;
                    }
                }
            }
        };
        problems.add(path.spot, message, hint);
    }
    places
}

/// The environment variables set by `env:`.
fn env(program: &Program, scope: &Scope, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (key, value) in &program.env {
        let (name, before) = (&key.name, problems.count());
        // A variable that is also in `secrets:` has already been reported.
        if is_secret(name) && !program.secrets.contains(name) {
            let message = format!(
                "`{name}` looks like a secret, and `env:` would write its value into keys and histories"
            );
            problems.add(
                key.spot,
                message,
                format!("pass it on from outside: `secrets: [{name}]`"),
            );
            continue;
        }
        let filled = fill(value, scope, problems);
        let text = match &filled.value {
            Value::Scalar(value) => spell(value).filter(|text| !text.contains('\0')),
            Value::List(_) | Value::Map(_) => None,
        };
        if let Some(text) = text {
            variables.insert(name.clone(), text);
        } else if problems.count() == before {
            let message = format!("the variable `{name}` is {}, not a string", filled.describe());
            problems.add(value.spot, message, "give it a string or a number");
        }
    }
    variables
}

/// True if the text is the name of a container image with its digest.
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

/// True if two relative paths are equal, or one is an ancestor of the other; on a Mac also where only case
/// differs.
fn nested(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
