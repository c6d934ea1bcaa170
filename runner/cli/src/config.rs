//! The configuration of a home: `config.yaml` in it.
//!
//! ```yaml
//! remote:
//!   url: s3://bucket/prefix      # or gs://…, az://…, file:///directory, a path, https://… (read-only)
//!   read_only: false             # if true, nothing is written to it
//!   sign_key_file: sign.key      # the OpenSSH private key (Ed25519) that signs records, relative to here
//!   sign_key_env: SIGN_KEY       # or an environment variable with that key
//!   trusted_keys:                # the public keys, besides the own one, whose records are used; or files
//!     - ssh-ed25519 AAAA… ci@example.com
//!   trust: unsigned              # in place of keys: records are used whoever wrote them
//!   endpoint: https://host:9000  # an S3-compatible server other than Amazon's
//!   region: eu-central-1
//!   allow_http: false            # if true, the endpoint may be `http://`
//!   timeout: 5s                  # the time without a response after which a run continues without it
//!   upload_time: 5m              # the longest wait for uploads at the end of a run
//! isolation: auto                # the default of `run:` stages: auto, required or none
//! python: ../env                 # the interpreter of `uses: python` and of kinds of packages that name none: a
//!                                # program on PATH, or the path of one or of an environment, relative to here
//! executors:                     # where `exec --executor NAME` and `resources: { executor: NAME }` run stages
//!   hpc: { kind: slurm, partition: cpu, account: desk, max_jobs: 200, store: shared }
//!   ray: { kind: ray, address: auto, store: remote }
//! ```
//!
//! `RUNNER_REMOTE` overrides `url`. A remote is used only with keys, or with `trust: unsigned`. Credentials
//! are not configured here: they come from the environment.

use cache::Store;
use cache_remote::{PublicKey, RemoteSettings, SignKey};
use runner_cluster::settings::Settings as Executor;
use runner_engine::Failure;
use runner_pipeline::config_file::{self, Key, Problems, Tree, Value, interval};
use runner_pipeline::{HERE, Isolation, PipelineErrors, suggest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file's name in a home.
pub(crate) const FILE: &str = "config.yaml";

/// The environment variable that names a remote.
pub(crate) const VARIABLE: &str = "RUNNER_REMOTE";

/// The block `remote:`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Remote {
    url: String,
    read_only: bool,
    sign_key_file: Option<PathBuf>,
    sign_key_env: Option<String>,
    trusted_keys: IgnoredAny,
    trust: Option<Trust>,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    #[serde(deserialize_with = "interval")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "interval")]
    upload_time: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Trust {
    Unsigned,
}

/// The remote that the home's configuration or the environment names; relative paths in the latter start at
/// `current`.
pub(crate) fn remote(
    home: &Path,
    current: &Path,
    env: &BTreeMap<String, String>,
) -> Result<Option<RemoteSettings>, Failure> {
    let variable = env.get(VARIABLE).filter(|url| !url.trim().is_empty());
    let mut settings = read(home, env, variable.is_none())?;
    if let Some(url) = variable {
        let url = if url.contains("://") {
            url.clone()
        } else {
            current.join(url).display().to_string()
        };
        let mut chosen = settings.unwrap_or_else(|| RemoteSettings::new(""));
        chosen.url = url;
        chosen.check(home).map_err(|(field, reason)| {
            let what = if field == "url" { VARIABLE } else { field };
            Failure::usage(format!("{what} is not a remote: {reason}")).hint(FORMS)
        })?;
        chosen.check_trust().map_err(|err| {
            let file = home.join(FILE);
            Failure::usage(err.to_string()).hint(format!(
                "in `remote:` of `{}`: {}",
                file.display(),
                err.hint()
            ))
        })?;
        settings = Some(chosen);
    }
    Ok(settings)
}

const FORMS: &str = "a remote is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`, a \
    path, or `https://…`, which is only read";
/// The default isolation of `run:` stages in a home's configuration.
pub(crate) fn isolation(home: &Path) -> Result<Isolation, Failure> {
    let Some((tree, mut problems)) = parsed(home)? else {
        return Ok(Isolation::default());
    };
    let Some((_, value)) = tree.entry("isolation") else {
        return Ok(Isolation::default());
    };
    let found = config_file::read("isolation", value, &mut problems);
    found.ok_or_else(|| wrong(problems.finish()))
}

/// The interpreter of Python stages that name none in a home's configuration: a name, or an absolute path.
pub(crate) fn python(home: &Path) -> Result<Option<String>, Failure> {
    let Some((tree, mut problems)) = parsed(home)? else {
        return Ok(None);
    };
    let Some((_, value)) = tree.entry("python") else {
        return Ok(None);
    };
    let found: Option<String> = config_file::read("python", value, &mut problems);
    let name = found.ok_or_else(|| wrong(problems.finish()))?;
    if !name.contains('/') {
        return Ok(Some(name));
    }
    let path = std::path::absolute(home.join(&name)).unwrap_or_else(|_| home.join(&name));
    Ok(Some(path.display().to_string()))
}

/// The executors of a home's configuration, by name.
pub(crate) fn executors(home: &Path) -> Result<BTreeMap<String, Executor>, Failure> {
    let Some((tree, mut problems)) = parsed(home)? else {
        return Ok(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    for (key, value) in tree.entry("executors").map_or(&[][..], |(_, value)| value.entries()) {
        found.extend(executor(key, value, &mut problems).map(|executor| (key.name.clone(), executor)));
    }
    match problems.any() {
        true => Err(wrong(problems.finish())),
        false => Ok(found),
    }
}

/// One of `executors:`.
fn executor(key: &Key, value: &Tree, problems: &mut Problems) -> Option<Executor> {
    let kinds = Executor::KINDS;
    if key.name == HERE {
        problems.add(key.spot, "`here` is this machine", "give the executor another name");
        return None;
    }
    let Some((_, kind)) = value.entry("kind") else {
        let hint = format!("write `kind: {}`", kinds.join("` or `kind: "));
        problems.add(
            key.spot,
            format!("`kind` of the executor `{}` is missing", key.name),
            hint,
        );
        return None;
    };
    let read = match kind.text() {
        Some("slurm") => config_file::read("executors", value, problems).map(Executor::Slurm),
        Some("ray") => config_file::read("executors", value, problems).map(Executor::Ray),
        other => {
            let name = other.unwrap_or_default();
            problems.add(
                kind.spot,
                format!("there is no executor of kind `{name}`"),
                suggest(name, "kinds", kinds),
            );
            None
        }
    }?;
    match read.check() {
        Ok(()) => Some(read),
        Err((field, message, hint)) => {
            let spot = value.entry(field).map_or(key.spot, |(_, value)| value.spot);
            problems.add(spot, message, hint);
            None
        }
    }
}

/// Opens the store of a home, as one that several machines share if its configuration says so.
pub(crate) fn open_store(home: &Path) -> Result<Store, Failure> {
    let takeover = executors(home)?.values().filter_map(Executor::takeover).max();
    Ok(match takeover {
        Some(takeover) => Store::open_shared(home, takeover)?,
        None => Store::open(home)?,
    })
}

fn wrong(errors: PipelineErrors) -> Failure {
    Failure::usage(errors.to_string())
}

/// The values of a home's file; `None` if there are none.
fn parsed(home: &Path) -> Result<Option<(Tree, Problems)>, Failure> {
    let file = home.join(FILE);
    let bytes = match cache::regular_file::read(&file) {
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        read => read.map_err(|err| {
            Failure::at("cannot read", &file)(err).hint(
                "this is the configuration of the home, a YAML file: make it readable, or move away what \
                has its name",
            )
        })?,
    };
    config_file::parse(&file, bytes).map_err(wrong)
}

/// If `needs_url` is set, a file that configures a remote has to contain its URL.
fn read(
    home: &Path,
    env: &BTreeMap<String, String>,
    needs_url: bool,
) -> Result<Option<RemoteSettings>, Failure> {
    let Some((tree, mut problems)) = parsed(home)? else {
        return Ok(None);
    };
    let settings = top(&tree, home, env, needs_url, &mut problems);
    if problems.any() {
        return Err(wrong(problems.finish()));
    }
    Ok(settings)
}

fn top(
    tree: &Tree,
    home: &Path,
    env: &BTreeMap<String, String>,
    needs_url: bool,
    problems: &mut Problems,
) -> Option<RemoteSettings> {
    let Value::Map(entries) = &tree.value else {
        problems.add(tree.spot, "expected a map", "write `remote:` and below it `url: …`");
        return None;
    };
    // See `isolation`, `python` and `executors`.
    let known = ["remote", "isolation", "python", "executors"];
    for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
        let message = format!("unknown key `{}`", key.name);
        problems.add(key.spot, message, suggest(&key.name, "keys", known));
    }
    let (key, value) = tree.entry("remote").filter(|(_, value)| !value.is_null())?;
    let found = remote_settings(value, home, env, problems);
    // A misspelt key has its own error.
    if needs_url && !problems.any() {
        if value.entry("url").is_none() {
            problems.add(key.spot, "`url` is missing", FORMS);
        } else if let Err(err) = found.check_trust() {
            problems.add(key.spot, err.to_string(), err.hint());
        }
    }
    Some(found)
}

fn remote_settings(
    tree: &Tree,
    home: &Path,
    env: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> RemoteSettings {
    let mut settings = RemoteSettings::new("");
    let Some(read) = config_file::read::<Remote>("remote", tree, problems) else {
        return settings;
    };
    let at = |key: &str| tree.entry(key).map_or(tree.spot, |(_, value)| value.spot);
    settings.url = read.url;
    settings.read_only = read.read_only;
    settings.trust_unsigned = read.trust.is_some();
    settings.endpoint = read.endpoint;
    settings.region = read.region;
    settings.allow_http = read.allow_http;
    settings.timeout = read.timeout.unwrap_or(settings.timeout);
    settings.upload_time = read.upload_time.unwrap_or(settings.upload_time);
    if let Some((_, keys)) = tree.entry("trusted_keys") {
        for item in keys.items() {
            trusted(item, home, &mut settings.trusted_keys, problems);
        }
    }
    // Neither the line nor the name is printed: it may be the key itself, in the wrong field.
    let mut key = |field: &str, what: &str, text: Result<Vec<u8>, String>| match text {
        Ok(text) => SignKey::parse(&text)
            .map_err(|reason| {
                problems.add_blank(at(field), format!("the {what} that `{field}` names {reason}"), SIGN)
            })
            .ok(),
        Err(message) => {
            problems.add_blank(at(field), message, SIGN);
            None
        }
    };
    let from_file = read.sign_key_file.map(|file| {
        let text = cache::regular_file::read(&home.join(file));
        let text = text.map_err(|err| format!("cannot read the file that `sign_key_file` names: {err}"));
        key("sign_key_file", "file", text)
    });
    let from_env = read.sign_key_env.map(|name| {
        let unset = || "the environment variable that `sign_key_env` names is not set".to_owned();
        let text = env.get(&name).map(|text| text.clone().into_bytes()).ok_or_else(unset);
        key("sign_key_env", "variable", text)
    });
    if from_file.is_some() && from_env.is_some() {
        let spots = ["sign_key_file", "sign_key_env"].map(|key| tree.entry(key).map(|(key, _)| key.spot));
        let second = spots
            .into_iter()
            .flatten()
            .max_by_key(|spot| (spot.place.line, spot.place.column));
        problems.add(
            second.unwrap_or_default(),
            "there are two signing keys",
            "keep one of `sign_key_file` and `sign_key_env`",
        );
    }
    settings.sign_key = from_file.or(from_env).flatten();
    if !settings.url.is_empty()
        && let Err((field, reason)) = settings.check(home)
    {
        // The line is not printed: it contains the rejected value.
        problems.add_blank(at(field), format!("`{field}` is not a remote: {reason}"), FORMS);
    }
    settings
}

/// The hint for a key that signs.
const SIGN: &str = "`ssh-keygen -t ed25519 -N '' -f FILE` makes a key that signs, and FILE.pub, which others \
    list in `trusted_keys:`; the shared secrets of earlier versions no longer sign";

/// The hint for a key that is trusted.
const TRUSTED: &str = "write each as in a `.pub` file of `ssh-keygen`, `ssh-ed25519 AAAA… name`, or name a \
    file of such lines";

/// Reads an item of `trusted_keys`: a public key, or the path of a file of them. Its line is not printed: it
/// may be a private key.
fn trusted(item: &Tree, home: &Path, keys: &mut Vec<PublicKey>, problems: &mut Problems) {
    let mut wrong = |message: String| problems.add_blank(item.spot, message, TRUSTED);
    let Some(text) = item.text() else {
        return wrong("an item of `trusted_keys` is not a string".to_owned());
    };
    if text.contains(char::is_whitespace) {
        match PublicKey::parse(text) {
            Ok(key) => keys.push(key),
            Err(reason) => wrong(format!("an item of `trusted_keys` {reason}")),
        }
        return;
    }
    match cache::regular_file::read(&home.join(text)) {
        Err(err) => wrong(format!("cannot read a file that `trusted_keys` names: {err}")),
        Ok(lines) => match PublicKey::parse_lines(&String::from_utf8_lossy(&lines)) {
            Ok(found) if found.is_empty() => {
                wrong("a file that `trusted_keys` names holds no key".to_owned())
            }
            Ok(found) => keys.extend(found),
            Err((line, reason)) => wrong(format!("line {line} of a file that `trusted_keys` names {reason}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("../../../cache/remote/tests/keys/one");
    const PUBLIC: &str = include_str!("../../../cache/remote/tests/keys/two.pub");

    fn of(text: &str, vars: &[(&str, &str)]) -> Result<Option<RemoteSettings>, String> {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        if !text.is_empty() {
            std::fs::write(home.join(FILE), text).unwrap();
        }
        std::fs::write(home.join("key"), KEY).unwrap();
        std::fs::write(home.join("secret"), "hard to guess\n").unwrap();
        std::fs::write(home.join("team"), format!("# the team\n{PUBLIC}")).unwrap();
        let env = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        remote(home, Path::new("/current"), &env)
            .map_err(|err| err.to_string().replace(&home.display().to_string(), "HOME"))
    }

    #[test]
    fn what_is_configured() {
        assert!(of("", &[]).unwrap().is_none());
        assert!(of("# nothing yet\n", &[]).unwrap().is_none());
        assert!(of("remote:\n", &[]).unwrap().is_none());
        let text = "remote:\n  url: s3://bucket/p\n  read_only: true\n  endpoint: http://127.0.0.1:1\n  \
            allow_http: true\n  region: x\n  timeout: 2s\n  upload_time: 1m\n  sign_key_file: key\n";
        let settings = of(text, &[]).unwrap().unwrap();
        assert_eq!(settings.url, "s3://bucket/p");
        assert_eq!(settings.sign_key, SignKey::parse(KEY.as_bytes()).ok());
        assert_eq!(
            (settings.timeout, settings.upload_time),
            (Duration::from_secs(2), Duration::from_secs(60))
        );
        assert!(settings.read_only && settings.allow_http);
        let other = of(text, &[(VARIABLE, "shared")]).unwrap().unwrap();
        assert_eq!(other.url, "/current/shared");
        assert!(other.read_only, "what else is configured stays");
        let unsigned = of("remote: { trust: unsigned }", &[(VARIABLE, "gs://b")])
            .unwrap()
            .unwrap();
        assert!(unsigned.url == "gs://b" && unsigned.trust_unsigned);
        assert!(of("", &[(VARIABLE, " ")]).unwrap().is_none());
        let public = PublicKey::parse(PUBLIC).unwrap();
        for keys in [
            "[team]".to_owned(),
            "team".to_owned(),
            format!("['{}']", PUBLIC.trim()),
            "[team, team]".to_owned(),
        ] {
            let text = format!("remote: {{ read_only: true, trusted_keys: {keys} }}");
            let reader = of(&text, &[(VARIABLE, "gs://b")]).unwrap().unwrap();
            assert!(reader.read_only && reader.url == "gs://b" && !reader.trust_unsigned);
            assert!(reader.trusted_keys.iter().all(|key| *key == public));
        }
        let from_env = of("remote: { url: /r, sign_key_env: K }", &[("K", KEY)])
            .unwrap()
            .unwrap();
        assert_eq!(from_env.sign_key, settings.sign_key);
    }

    #[test]
    fn the_isolation_is_auto_unless_it_is_configured() {
        let of = |text: &str| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(FILE), text).unwrap();
            let home = dir.path().display().to_string();
            isolation(dir.path()).map_err(|err| err.to_string().replace(&home, "HOME"))
        };
        assert_eq!(isolation(Path::new("/nowhere")).unwrap(), Isolation::Auto);
        assert_eq!(of("remote: { ulr: wrong }\n"), Ok(Isolation::Auto));
        assert_eq!(of("isolation: required\n"), Ok(Isolation::Required));
        insta::assert_snapshot!(of("isolation: requird\n").unwrap_err(), @r#"
        error: HOME/config.yaml:1:12: `isolation` is the string "requird"
          |
        1 | isolation: requird
          |            ^^^^^^^
          = hint: did you mean `required`?
        "#);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| of(text, &[]).unwrap_err();
        insta::assert_snapshot!(wrong("remote:\n  url: s3://b\n  readonly: true\n"), @r"
        error: HOME/config.yaml:3:3: unknown key `readonly` in `remote`
          |
        3 |   readonly: true
          |   ^^^^^^^^
          = hint: did you mean `read_only`?
        ");
        insta::assert_snapshot!(wrong("remot: {}\n"), @r"
        error: HOME/config.yaml:1:1: unknown key `remot`
          |
        1 | remot: {}
          | ^^^^^
          = hint: did you mean `remote`?
        ");
        insta::assert_snapshot!(wrong("remote: { ulr: /r }\n"), @r"
        error: HOME/config.yaml:1:11: unknown key `ulr` in `remote`
          |
        1 | remote: { ulr: /r }
          |           ^^^
          = hint: did you mean `url`?
        ");
        insta::assert_snapshot!(wrong("remote: { read_only: true }\n"), @r"
        error: HOME/config.yaml:1:1: `url` is missing
          |
        1 | remote: { read_only: true }
          | ^^^^^^
          = hint: a remote is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`, a path, or `https://…`, which is only read
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, read_only: yes, timeout: 5 }\n"), @r#"
        error: HOME/config.yaml:1:31: `read_only` is the string "yes", not `true` or `false`
          |
        1 | remote: { url: /r, read_only: yes, timeout: 5 }
          |                               ^^^
          = hint: write `true` or `false`

        HOME/config.yaml:1:45: `timeout` is the number 5, not a string
          |
        1 | remote: { url: /r, read_only: yes, timeout: 5 }
          |                                             ^
          = hint: write it as `5s`, `10m` or `1h`
        "#);
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_file: gone }\n"), @r"
        error: HOME/config.yaml:1:35: cannot read the file that `sign_key_file` names: No such file or directory (os error 2)
          = hint: `ssh-keygen -t ed25519 -N '' -f FILE` makes a key that signs, and FILE.pub, which others list in `trusted_keys:`; the shared secrets of earlier versions no longer sign
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_file: secret }\n"), @r"
        error: HOME/config.yaml:1:35: the file that `sign_key_file` names is not an OpenSSH private key
          = hint: `ssh-keygen -t ed25519 -N '' -f FILE` makes a key that signs, and FILE.pub, which others list in `trusted_keys:`; the shared secrets of earlier versions no longer sign
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_env: K }\n"), @r"
        error: HOME/config.yaml:1:34: the environment variable that `sign_key_env` names is not set
          = hint: `ssh-keygen -t ed25519 -N '' -f FILE` makes a key that signs, and FILE.pub, which others list in `trusted_keys:`; the shared secrets of earlier versions no longer sign
        ");
        insta::assert_snapshot!(wrong("remote: \
            { url: /r, trusted_keys: [key, gone, ssh-rsa AAAA, 7] }\n"), @r"
        error: HOME/config.yaml:1:35: line 1 of a file that `trusted_keys` names is not a public key of the form `ssh-ed25519 AAAA… name`
          = hint: write each as in a `.pub` file of `ssh-keygen`, `ssh-ed25519 AAAA… name`, or name a file of such lines

        HOME/config.yaml:1:40: cannot read a file that `trusted_keys` names: No such file or directory (os error 2)
          = hint: write each as in a `.pub` file of `ssh-keygen`, `ssh-ed25519 AAAA… name`, or name a file of such lines

        HOME/config.yaml:1:46: an item of `trusted_keys` is not an Ed25519 key
          = hint: write each as in a `.pub` file of `ssh-keygen`, `ssh-ed25519 AAAA… name`, or name a file of such lines

        HOME/config.yaml:1:60: an item of `trusted_keys` is not a string
          = hint: write each as in a `.pub` file of `ssh-keygen`, `ssh-ed25519 AAAA… name`, or name a file of such lines
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, trust: yes }\n"), @r#"
        error: HOME/config.yaml:1:27: `trust` is the string "yes"
          |
        1 | remote: { url: /r, trust: yes }
          |                           ^^^
          = hint: leave it out and name keys (`sign_key_file:`, `trusted_keys:`), or write `unsigned`
        "#);
        insta::assert_snapshot!(wrong("remote: [1]\n"), @r"
        error: HOME/config.yaml:1:9: `remote` is a list, not a map of keys
          |
        1 | remote: [1]
          |         ^
          = hint: write `url: …` below it
        ");
        insta::assert_snapshot!(wrong("remote: { url: /a, url: /b }\n"), @r"
        error: HOME/config.yaml:1:20: the key `url` is given twice
          |
        1 | remote: { url: /a, url: /b }
          |                    ^^^
          = hint: it is already defined in line 1: remove one of the two
        ");
    }

    #[test]
    fn a_remote_of_anyone_is_refused() {
        insta::assert_snapshot!(of("remote:\n  url: /r\n", &[]).unwrap_err(), @r"
        error: HOME/config.yaml:1:1: the remote is written to, and no key signs what is written
          |
        1 | remote:
          | ^^^^^^
          = hint: `ssh-keygen -t ed25519 -N '' -f sign.key` makes a key, which `sign_key_file: sign.key` names; or write `read_only: true`; or `trust: unsigned`, if everyone who can write to it may run programs as you
        ");
        insta::assert_snapshot!(of("remote: { url: /r, read_only: true }\n", &[]).unwrap_err(), @r"
        error: HOME/config.yaml:1:1: the remote is read, and no key is trusted to have signed what is read
          |
        1 | remote: { url: /r, read_only: true }
          | ^^^^^^
          = hint: list the public keys of its writers, `trusted_keys: [ssh-ed25519 AAAA…]`, or a file of them; or write `trust: unsigned`, if everyone who can write to it may run programs as you
        ");
        insta::assert_snapshot!(of("remote: \
            { url: /r, trust: unsigned, trusted_keys: [team] }\n", &[]).unwrap_err(), @r"
        error: HOME/config.yaml:1:1: the remote has trusted keys, and accepts records without a signature
          |
        1 | remote: { url: /r, trust: unsigned, trusted_keys: [team] }
          | ^^^^^^
          = hint: keep one of `trusted_keys` and `trust: unsigned`
        ");
        insta::assert_snapshot!(of("", &[(VARIABLE, "gs://b")]).unwrap_err(), @r"
        error: the remote is written to, and no key signs what is written
          hint: in `remote:` of `HOME/config.yaml`: `ssh-keygen -t ed25519 -N '' -f sign.key` makes a key, which `sign_key_file: sign.key` names; or write `read_only: true`; or `trust: unsigned`, if everyone who can write to it may run programs as you
        ");
        let refused = [
            "remote: { url: /r, trusted_keys: [team] }",
            "remote: { url: 'https://host/x' }",
        ];
        for text in refused {
            assert!(of(text, &[]).unwrap_err().contains("no key"), "{text}");
        }
        let accepted = [
            "remote: { url: /r, sign_key_file: key }",
            "remote: { url: /r, trust: unsigned }",
            "remote: { url: /r, trust: unsigned, sign_key_file: key }",
            "remote: { url: /r, read_only: true, trusted_keys: [team] }",
            "remote: { url: 'https://host/x', trusted_keys: [team] }",
        ];
        for text in accepted {
            assert!(of(text, &[]).unwrap().is_some(), "{text}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for text in [
            "remote:\n  url: https://me:hunter22@host/x\n",
            "remote: { url: 's3://b', endpoint: 'https://me:hunter22@host' }\n",
        ] {
            let err = of(text, &[]).unwrap_err();
            assert!(
                err.contains("credentials come from the environment") && !err.contains("hunter22"),
                "{err}"
            );
        }
        let err = of("", &[(VARIABLE, "s3://me:hunter22@bucket")]).unwrap_err();
        assert!(err.contains(VARIABLE) && !err.contains("hunter22"), "{err}");
    }
}
