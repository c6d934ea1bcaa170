//! The check of declared programs that are known by their version: their `--version` has to print what is in the key.

use super::limits::Limits;
use super::sandbox::{Said, Sandbox, Spec};
use runner_pipeline::Tool;
use stages_core::StageError;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time that a program has to print its version.
const LONGEST: Duration = Duration::from_secs(60);

/// The number of bytes of its output that are read.
const READ: u64 = 4096;

/// The first line that `program --version` prints, started where and as `spec` says.
///
/// # Errors
/// If it cannot be started, or does not end.
pub(super) fn first_line(
    program: &Path,
    name: &str,
    sandbox: &Sandbox,
    spec: &Spec,
    limits: &Limits,
) -> Result<String, StageError> {
    let failed = |what: String| StageError::new(format!("cannot run `{} --version`: {what}", program.display()));
    let spec = Spec {
        program: program.to_owned(),
        arguments: vec![name.to_owned(), "--version".to_owned()],
        ..spec.clone()
    };
    let (from, to) = io::pipe().map_err(|err| failed(err.to_string()))?;
    let mut running = sandbox.run(&spec, to.into())?;
    // A program that prints more than this ends by SIGPIPE.
    let output = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.take(READ).read_to_end(&mut bytes);
        bytes
    });
    let began = Instant::now();
    let ended = loop {
        match running.said(Duration::from_millis(100)) {
            Ok(Some(Said::Ended { .. })) => break Ok(()),
            Ok(Some(Said::Failed { message })) => break Err(failed(message)),
            Ok(_) if limits.is_cancelled() => break Err(StageError::interrupted()),
            Ok(_) if began.elapsed() > LONGEST => break Err(failed("it does not end".to_owned())),
            Ok(_) => {}
            Err(err) => break Err(failed(err.to_string())),
        }
    };
    // Whatever still runs is killed by this, and the pipe ends.
    drop(running);
    ended?;
    let bytes = output.join().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Checks the tools that have a version. `first_line` runs a program, which it is also given the name of, with `--version` where the stage
/// runs, and returns the first line of its output.
///
/// # Errors
/// If a program prints another version, or does not start.
pub(super) fn check_versions(
    tools: &[Tool],
    first_line: impl Fn(&Path, &str) -> Result<String, StageError>,
) -> Result<(), StageError> {
    for tool in tools {
        let Some(version) = &tool.version else {
            continue;
        };
        let (program, name): (PathBuf, &str) = match tool.is_environment() {
            true => (tool.bin.join("python"), "python"),
            false => (tool.path.clone(), tool.link()),
        };
        let line = first_line(&program, name)?;
        if line.contains(version.as_str()) {
            continue;
        }
        let shown: String = line.chars().filter(|c| !c.is_control()).take(80).collect();
        return Err(match tool.is_environment() {
            true => StageError::new(format!(
                "the virtual environment `{}` is of Python {version}, and its `python --version` prints `{shown}`",
                tool.name
            ))
            .hint(format!(
                "create it anew, or `python3 -m venv --upgrade {}`",
                tool.path.display()
            )),
            false => StageError::new(format!(
                "`{} --version` prints `{shown}`, not `{version}`",
                tool.path.display()
            ))
            .hint("install that version, or change `version:` in `tools:`"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(path: &str, bin: &str, version: Option<&str>) -> Tool {
        Tool {
            name: "t".to_owned(),
            path: path.into(),
            visible: Vec::new(),
            bin: bin.into(),
            version: version.map(str::to_owned),
            system_packages: false,
            sources: Vec::new(),
        }
    }

    #[test]
    fn a_version_is_part_of_the_first_line() {
        let one = |version| [tool("/o/bin/t", "/o/bin/t", version)];
        let prints = |program: &Path, name: &str| {
            assert_eq!((program, name), (Path::new("/o/bin/t"), "t"));
            Ok("T 1.22.3 (x)".to_owned())
        };
        check_versions(&one(Some("1.22.3")), prints).unwrap();
        let error = check_versions(&one(Some("1.23")), prints).unwrap_err();
        assert_eq!(error.message, "`/o/bin/t --version` prints `T 1.22.3 (x)`, not `1.23`");
        check_versions(&one(None), |_, _| Err(StageError::new("not asked"))).unwrap();
        let fails = check_versions(&one(Some("1")), |_, _| Err(StageError::new("no such file")));
        assert_eq!(fails.unwrap_err().message, "no such file");
    }

    #[test]
    fn an_environment_has_the_interpreter_that_it_was_created_with() {
        let env = [tool("/p/env", "/p/env/bin", Some("3.11.2"))];
        let prints = |program: &Path, name: &str| {
            assert_eq!((program, name), (Path::new("/p/env/bin/python"), "python"));
            Ok("Python 3.12.1".to_owned())
        };
        let error = check_versions(&env, prints).unwrap_err();
        assert!(error.message.contains("prints `Python 3.12.1`"), "{}", error.message);
        assert!(error.hint.unwrap().contains("--upgrade /p/env"));
    }
}
