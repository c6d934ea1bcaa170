//! The check of declared programs that are known by their version: their `--version` has to print what is in
//! the key.

use runner_pipeline::Tool;
use stages_core::StageError;
use std::path::{Path, PathBuf};

/// Checks the tools that have a version. `first_line` runs a program, which it is also given the name of,
/// with `--version` where the stage runs, and returns the first line of its output.
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
                "the virtual environment `{}` is of Python {version}, and its `python --version` prints \
                `{shown}`",
                tool.name
            ))
            .hint(format!(
                "create it again, or `python3 -m venv --upgrade {}`",
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
