//! The location of the store and of the history of runs.

use std::path::{Path, PathBuf};

/// The directory's name inside a project.
const NAME: &str = ".runner";

/// `RUNNER_HOME` if it is set (relative to `current`); otherwise `.runner/` of the nearest directory at or
/// above `start` that has one or is the root of a repository; otherwise of `current`.
pub(crate) fn resolve(variable: Option<&str>, start: &Path, current: &Path) -> PathBuf {
    if let Some(home) = variable.filter(|home| !home.is_empty()) {
        return current.join(home);
    }
    start
        .ancestors()
        .find(|dir| dir.join(NAME).is_dir() || dir.join(".git").exists())
        .unwrap_or(current)
        .join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_home() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let deep = root.join("project/pipelines/deep");
        std::fs::create_dir_all(&deep).unwrap();
        let current = Path::new("/current");
        assert_eq!(
            resolve(Some("elsewhere"), &deep, current),
            Path::new("/current/elsewhere")
        );
        std::fs::create_dir(root.join("project/.git")).unwrap();
        assert_eq!(resolve(None, &deep, current), root.join("project/.runner"));
        assert_eq!(resolve(Some(""), &deep, current), root.join("project/.runner"));
        std::fs::create_dir(deep.join(".runner")).unwrap();
        assert_eq!(resolve(None, &deep, current), deep.join(".runner"));
    }
}
