//! The configuration of a home: `config.yaml` in it.
//!
//! ```yaml
//! remote:
//!   url: s3://bucket/prefix      # or gs://…, az://…, file:///directory, a path, https://… (read-only)
//!   read_only: false             # if true, nothing is written to it
//!   sign_key_file: sign.key      # a file with the key that signs records, relative to this file
//!   sign_key_env: SIGN_KEY       # or an environment variable with that key
//!   endpoint: https://host:9000  # an S3-compatible server other than Amazon's
//!   region: eu-central-1
//!   allow_http: false            # if true, the endpoint may be `http://`
//!   timeout: 5s                  # the time without a response after which a run continues without the remote
//!   upload_time: 5m              # the longest wait for uploads at the end of a run
//! ```
//!
//! `RUNNER_REMOTE` overrides `url`. Credentials are not configured here: they come from the environment.

use cache_remote::{RemoteSettings, SignKey};
use runner_engine::Failure;
use runner_pipeline::config_file::{self, Problems, Tree, Value};
use runner_pipeline::{PipelineErrors, duration, suggest};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The file's name in a home.
pub const FILE: &str = "config.yaml";

/// The environment variable that names a remote.
pub const VARIABLE: &str = "RUNNER_REMOTE";

const KEYS: [&str; 9] = [
    "url",
    "read_only",
    "sign_key_file",
    "sign_key_env",
    "endpoint",
    "region",
    "allow_http",
    "timeout",
    "upload_time",
];

/// The remote that the home's configuration or the environment names; relative paths in the latter start at `current`.
///
/// # Errors
/// When the file cannot be read or is invalid; the error names the line.
pub fn remote(home: &Path, current: &Path, env: &BTreeMap<String, String>) -> Result<Option<RemoteSettings>, Failure> {
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
        settings = Some(chosen);
    }
    Ok(settings)
}

const FORMS: &str = "a remote is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`, a path, or `https://…`, which is only read";

/// If `needs_url` is set, a file that configures a remote has to contain its URL.
fn read(home: &Path, env: &BTreeMap<String, String>, needs_url: bool) -> Result<Option<RemoteSettings>, Failure> {
    let file = home.join(FILE);
    let bytes = match cache::regular_file::read(&file) {
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        read => read.map_err(|err| Failure::caused(format!("cannot read `{}`", file.display()), &err))?,
    };
    let wrong = |errors: PipelineErrors| Failure::usage(errors.to_string());
    let Some((tree, mut problems)) = config_file::parse(&file, bytes).map_err(wrong)? else {
        return Ok(None);
    };
    let settings = top(tree, home, env, needs_url, &mut problems);
    if problems.any() {
        return Err(wrong(problems.finish()));
    }
    Ok(settings)
}

fn top(
    tree: Tree,
    home: &Path,
    env: &BTreeMap<String, String>,
    needs_url: bool,
    problems: &mut Problems,
) -> Option<RemoteSettings> {
    let Value::Map(entries) = tree.value else {
        problems.add(tree.spot, "expected a map", "write `remote:` and below it `url: …`");
        return None;
    };
    let mut settings = None;
    for (key, value) in entries {
        if key.name != "remote" {
            let message = format!("unknown key `{}`", key.name);
            problems.add(key.spot, message, suggest(&key.name, "keys", ["remote"]));
            continue;
        }
        settings = match value.value {
            _ if value.is_null() => None,
            Value::Map(_) => {
                let found = of_remote(&value, home, env, problems);
                // A misspelt key has its own error.
                if needs_url && value.entry("url").is_none() && !problems.any() {
                    problems.add(key.spot, "`url` is missing", FORMS);
                }
                Some(found)
            }
            _ => {
                let message = format!("`remote` is {}, not a map of keys", value.describe());
                problems.add(value.spot, message, "write `url: …` below it");
                None
            }
        };
    }
    settings
}

fn of_remote(tree: &Tree, home: &Path, env: &BTreeMap<String, String>, problems: &mut Problems) -> RemoteSettings {
    let mut settings = RemoteSettings::new("");
    let Value::Map(entries) = &tree.value else {
        return settings;
    };
    for (key, value) in entries {
        let name = key.name.as_str();
        let mut wanted = |what: &str| problems.add(value.spot, format!("`{name}` is not {what}"), hint(name));
        match name {
            "url" => match value.text() {
                Some(text) => settings.url = text.to_owned(),
                None => wanted("a string"),
            },
            "endpoint" | "region" => match value.text() {
                Some(text) if name == "endpoint" => settings.endpoint = Some(text.to_owned()),
                Some(text) => settings.region = Some(text.to_owned()),
                None => wanted("a string"),
            },
            "read_only" | "allow_http" => match value.to_json().as_bool() {
                Some(flag) if name == "read_only" => settings.read_only = flag,
                Some(flag) => settings.allow_http = flag,
                None => wanted("`true` or `false`"),
            },
            "timeout" | "upload_time" => match value.text().and_then(duration) {
                Some(time) if name == "timeout" => settings.timeout = time,
                Some(time) => settings.upload_time = time,
                None => wanted("a time"),
            },
            "sign_key_file" | "sign_key_env" if settings.sign_key.is_some() => {
                problems.add(
                    key.spot,
                    "there are two signing keys",
                    "keep one of `sign_key_file` and `sign_key_env`",
                );
            }
            // Neither the line nor the name is printed: it may be the key itself, in the wrong field.
            "sign_key_file" => match value.text().map(|path| std::fs::read(home.join(path))) {
                None => wanted("the path of a file"),
                Some(Err(err)) => {
                    let message = format!("cannot read the file that `sign_key_file` names: {err}");
                    problems.add_blank(value.spot, message, hint(name));
                }
                Some(Ok(secret)) => match SignKey::new(&secret) {
                    None => problems.add_blank(value.spot, "the file that `sign_key_file` names is empty", hint(name)),
                    key => settings.sign_key = key,
                },
            },
            "sign_key_env" => match value.text().map(|name| env.get(name)) {
                None => wanted("the name of an environment variable"),
                Some(secret) => match secret.and_then(|secret| SignKey::new(secret.as_bytes())) {
                    None => {
                        let message = "the environment variable that `sign_key_env` names is not set or empty";
                        problems.add_blank(value.spot, message, hint(name));
                    }
                    key => settings.sign_key = key,
                },
            },
            other => problems.add(
                key.spot,
                format!("unknown key `{other}` in `remote`"),
                suggest(other, "keys of a remote", KEYS),
            ),
        }
    }
    if !settings.url.is_empty()
        && let Err((field, reason)) = settings.check(home)
    {
        let spot = tree.entry(field).map_or(tree.spot, |(_, value)| value.spot);
        // The line is not printed: it contains the rejected value.
        problems.add_blank(spot, format!("`{field}` is not a remote: {reason}"), FORMS);
    }
    settings
}

fn hint(key: &str) -> &'static str {
    match key {
        "url" => FORMS,
        "endpoint" => "write `https://host:port`, or leave it out for Amazon's own",
        "region" => "write it as the store names it, such as `eu-central-1`",
        "timeout" | "upload_time" => "write it as `5s`, `10m` or `1h`",
        "sign_key_file" => {
            "any text will do that is hard to guess, the same on every machine: `openssl rand -hex 32 > FILE`"
        }
        "sign_key_env" => "set it to any text that is hard to guess, the same on every machine",
        _ => "write `true` or `false`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of(text: &str, vars: &[(&str, &str)]) -> Result<Option<RemoteSettings>, String> {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        if !text.is_empty() {
            std::fs::write(home.join(FILE), text).unwrap();
        }
        std::fs::write(home.join("key"), "hard to guess\n").unwrap();
        std::fs::write(home.join("empty"), "\n").unwrap();
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
        let text = "remote:\n  url: s3://bucket/p\n  read_only: true\n  endpoint: http://127.0.0.1:1\n  allow_http: true\n  region: x\n  timeout: 2s\n  upload_time: 1m\n  sign_key_file: key\n";
        let settings = of(text, &[]).unwrap().unwrap();
        assert_eq!(settings.url, "s3://bucket/p");
        assert_eq!(settings.sign_key, SignKey::new(b"hard to guess"));
        assert_eq!(
            (settings.timeout, settings.upload_time),
            (Duration::from_secs(2), Duration::from_secs(60))
        );
        assert!(settings.read_only && settings.allow_http);
        let other = of(text, &[(VARIABLE, "shared")]).unwrap().unwrap();
        assert_eq!(other.url, "/current/shared");
        assert!(other.read_only, "what else is configured stays");
        assert_eq!(of("", &[(VARIABLE, "gs://b")]).unwrap().unwrap().url, "gs://b");
        assert!(of("", &[(VARIABLE, " ")]).unwrap().is_none());
        let partly = of("remote: { read_only: true }", &[(VARIABLE, "gs://b")])
            .unwrap()
            .unwrap();
        assert!(partly.read_only && partly.url == "gs://b");
        let of_env = of("remote: { url: /r, sign_key_env: K }", &[("K", "hard to guess")])
            .unwrap()
            .unwrap();
        assert_eq!(of_env.sign_key, settings.sign_key);
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
        insta::assert_snapshot!(wrong("remote: { url: /r, read_only: yes, timeout: 5 }\n"), @r"
        error: HOME/config.yaml:1:31: `read_only` is not `true` or `false`
          |
        1 | remote: { url: /r, read_only: yes, timeout: 5 }
          |                               ^^^
          = hint: write `true` or `false`

        HOME/config.yaml:1:45: `timeout` is not a time
          |
        1 | remote: { url: /r, read_only: yes, timeout: 5 }
          |                                             ^
          = hint: write it as `5s`, `10m` or `1h`
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_file: gone }\n"), @r"
        error: HOME/config.yaml:1:35: cannot read the file that `sign_key_file` names: No such file or directory (os error 2)
          = hint: any text will do that is hard to guess, the same on every machine: `openssl rand -hex 32 > FILE`
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_file: empty }\n"), @r"
        error: HOME/config.yaml:1:35: the file that `sign_key_file` names is empty
          = hint: any text will do that is hard to guess, the same on every machine: `openssl rand -hex 32 > FILE`
        ");
        insta::assert_snapshot!(wrong("remote: { url: /r, sign_key_env: K }\n"), @r"
        error: HOME/config.yaml:1:34: the environment variable that `sign_key_env` names is not set or empty
          = hint: set it to any text that is hard to guess, the same on every machine
        ");
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
