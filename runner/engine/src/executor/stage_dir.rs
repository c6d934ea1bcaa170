//! The directory of an external program.
//!
//! ```text
//! TMP/run-XXXXXX/
//! └── stage/           `/stage` of an isolated program
//!     ├── work/        its working directory: empty but for its `files:`
//!     ├── needs/X/     if it has inputs: the content of its input X, or `seed=1/` and so on below it if it is collected: see `input_files`
//!     ├── tools/       if it has any: links to its tools
//!     ├── home/        HOME
//!     └── tmp/         TMPDIR; `/tmp` of an isolated program
//! ```
//!
//! In a store of a group these directories are writable for the group, so that what a killed run left is
//! removed by anybody's `gc`.

use super::files::failed;
use cache::{Store, Workspace, shared};
use runner_pipeline::is_plain_path;
use runner_sandbox::Isolated;
use stages_core::StageError;
use std::fs;
use std::path::{Path, PathBuf};

/// The path of the stage's directory for an isolated program.
const INSIDE: &str = "/stage";

/// The directory of an external program.
pub(super) struct StageDir {
    workspace: Workspace,
    isolated: Isolated,
}

impl StageDir {
    /// Creates the directory.
    pub(super) fn new(store: &Store, isolated: Isolated) -> Result<Self, StageError> {
        // Paths are inserted into the command without quoting.
        let workspace = if isolated.has_own_root() || store.root().to_str().is_some_and(is_plain_path) {
            store.workspace()?
        } else {
            let tmp = std::env::temp_dir();
            Workspace::new(&fs::canonicalize(&tmp).map_err(failed("read", &tmp))?)?
        };
        let dir = Self { workspace, isolated };
        let stage = dir.stage();
        shared::create_dir(&stage).map_err(failed("create", &stage))?;
        for name in ["work", "home", "tmp"] {
            dir.create(name)?;
        }
        Ok(dir)
    }

    /// Creates a directory in the stage's directory, and returns its path on the host.
    pub(super) fn create(&self, name: &str) -> Result<PathBuf, StageError> {
        let path = self.host(name);
        shared::create_dir(&path).map_err(failed("create", &path))?;
        Ok(path)
    }

    /// A file beside the stage's directory, out of the program's sight if it is isolated.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    /// The stage's directory on the host.
    pub(super) fn stage(&self) -> PathBuf {
        self.beside("stage")
    }

    /// The path on the host of a file in the stage's directory.
    pub(super) fn host(&self, name: &str) -> PathBuf {
        self.stage().join(name)
    }

    /// The path that the program sees for a path on the host in the stage's directory.
    pub(super) fn seen(&self, host: &Path) -> PathBuf {
        match host.strip_prefix(self.stage()) {
            Ok(name) if self.isolated.has_own_root() => Path::new(INSIDE).join(name),
            _ => host.to_owned(),
        }
    }

    /// The path on the host for a path that the program sees.
    pub(super) fn on_host(&self, seen: &Path) -> PathBuf {
        if !self.isolated.has_own_root() {
            return seen.to_owned();
        }
        match (seen.strip_prefix(INSIDE), seen.strip_prefix("/tmp")) {
            (Ok(name), _) => self.stage().join(name),
            (_, Ok(name)) => self.host("tmp").join(name),
            _ => seen.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn in_a_shared_store_the_group_may_remove_it() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o2775)).unwrap();
        let store = Store::open(home.path()).unwrap();
        let dir = StageDir::new(&store, Isolated::Namespaces).unwrap();
        dir.create("needs").unwrap();
        for path in ["", "work", "home", "tmp", "needs"].map(|name| dir.host(name)) {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o2070, 0o2070, "{}: {mode:o}", path.display());
        }
    }
}
