//! The directory of an external program.
//!
//! ```text
//! TMP/run-XXXXXX/
//! └── stage/           `/stage` of an isolated program
//!     ├── work/        its working directory: empty but for its `files:`
//!     ├── needs/X/     the content of its input X, or `seed=1/` and so on below it if it is collected: see `input_files`
//!     ├── tools/       if it has any: links to its tools
//!     ├── home/        HOME
//!     └── tmp/         TMPDIR; `/tmp` of an isolated program
//! ```
//!
//! In a store of a group these directories are writable for the group, so that what a killed run left is
//! removed by anybody's `gc`.
//!
//! To create and remove these directories can take longer than the program: ext4 searches for inodes beyond
//! those that were freed within the last seconds. They are emptied and given to the next program.

use super::files::failed;
use cache::{Store, Workspace, remove_tree, shared};
use runner_pipeline::is_plain_path;
use runner_sandbox::Isolated;
use rustix::fs::{Mode, OFlags, flistxattr, open};
use stages_core::StageError;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The path of the stage's directory for an isolated program.
const INSIDE: &str = "/stage";

/// The directories that every program has.
const DIRECTORIES: [&str; 4] = ["work", "needs", "home", "tmp"];

/// The emptied directories of programs that have ended, in the store of an executor.
#[derive(Default)]
pub(super) struct Emptied(Mutex<Vec<Workspace>>);

impl Emptied {
    fn take(&self) -> Option<Workspace> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Empties the directory of an isolated program of which no process is left, for the next program. It is
    /// removed if the program has changed more than its contents.
    pub(super) fn put(&self, dir: StageDir) {
        if dir.isolated == Isolated::Namespaces && dir.empty().unwrap_or(false) {
            let mut emptied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            emptied.push(dir.workspace);
        }
    }
}

/// The directory of an external program.
pub(super) struct StageDir {
    workspace: Workspace,
    isolated: Isolated,
}

impl StageDir {
    /// Creates the directory, or takes an emptied one.
    pub(super) fn new(store: &Store, isolated: Isolated, emptied: &Emptied) -> Result<Self, StageError> {
        if isolated == Isolated::Namespaces
            && let Some(workspace) = emptied.take()
        {
            return Ok(Self { workspace, isolated });
        }
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
        for name in DIRECTORIES {
            dir.create(name)?;
        }
        Ok(dir)
    }

    /// Removes all but the directories that every program has; false if one of these is not as it was
    /// created.
    fn empty(&self) -> io::Result<bool> {
        let root = self.workspace.path();
        let created = attributes(root)?;
        remove_all_but(root, &["stage"])?;
        let stage = self.stage();
        if !created.is_plain || attributes(&stage)? != created {
            return Ok(false);
        }
        remove_all_but(&stage, &DIRECTORIES)?;
        for name in DIRECTORIES {
            let dir = stage.join(name);
            if attributes(&dir)? != created {
                return Ok(false);
            }
            remove_all_but(&dir, &[])?;
        }
        Ok(true)
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

/// The attributes of a directory that its owner may change.
#[derive(PartialEq)]
struct Attributes {
    mode: u32,
    owner: (u32, u32),
    /// The inode flags, where the file system has any.
    flags: Option<u32>,
    /// True without extended attributes, such as an access control list.
    is_plain: bool,
}

/// The attributes of a directory, which must not be a link.
fn attributes(path: &Path) -> io::Result<Attributes> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = File::from(open(path, flags, Mode::empty())?);
    let meta = dir.metadata()?;
    Ok(Attributes {
        mode: meta.mode(),
        owner: (meta.uid(), meta.gid()),
        flags: inode_flags(&dir),
        is_plain: matches!(flistxattr(&dir, &mut [0_u8; 0]), Ok(0)),
    })
}

#[cfg(target_os = "linux")]
fn inode_flags(dir: &File) -> Option<u32> {
    rustix::fs::ioctl_getflags(dir).ok().map(|flags| flags.bits())
}

/// Only programs in namespaces leave their directories to the next ones.
#[cfg(not(target_os = "linux"))]
fn inode_flags(_: &File) -> Option<u32> {
    None
}

/// Removes the entries of a directory, but for these.
fn remove_all_but(dir: &Path, kept: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if kept.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => remove_tree(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
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
        let dir = StageDir::new(&store, Isolated::Namespaces, &Emptied::default()).unwrap();
        for path in ["", "work", "home", "tmp", "needs"].map(|name| dir.host(name)) {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o2070, 0o2070, "{}: {mode:o}", path.display());
        }
    }

    /// The number of directories that are left for the next program after one has changed its own.
    fn left_after(change: impl Fn(&StageDir)) -> usize {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let emptied = Emptied::default();
        let dir = StageDir::new(&store, Isolated::Namespaces, &emptied).unwrap();
        let stage = dir.stage();
        change(&dir);
        emptied.put(dir);
        let left = emptied.0.lock().unwrap().len();
        assert_eq!(stage.exists(), left == 1);
        if left == 1 {
            let dir = StageDir::new(&store, Isolated::Namespaces, &emptied).unwrap();
            assert_eq!(dir.stage(), stage);
            let names = |dir: &Path| {
                let entries = fs::read_dir(dir).unwrap();
                let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                names
            };
            assert_eq!(names(&stage), ["home", "needs", "tmp", "work"]);
            for name in DIRECTORIES {
                assert_eq!(names(&dir.host(name)).len(), 0, "{name}");
            }
        }
        left
    }

    #[test]
    fn what_a_program_wrote_is_gone_before_the_next_one() {
        let left = left_after(|dir| {
            fs::create_dir_all(dir.host("work/deep/er")).unwrap();
            fs::write(dir.host("work/deep/x"), "x").unwrap();
            fs::set_permissions(dir.host("work/deep"), fs::Permissions::from_mode(0o500)).unwrap();
            for name in ["home/.profile", "tmp/x", "x", "needs/a"] {
                fs::write(dir.host(name), "x").unwrap();
            }
            std::os::unix::fs::symlink("/", dir.host("work/root")).unwrap();
            fs::write(dir.beside("version"), "x").unwrap();
        });
        assert_eq!(left, 1);
    }

    #[test]
    fn directories_that_a_program_changed_are_removed() {
        let closed = |dir: &StageDir, name: &str| {
            fs::set_permissions(dir.host(name), fs::Permissions::from_mode(0o777)).unwrap();
        };
        assert_eq!(left_after(|dir| closed(dir, "home")), 0);
        assert_eq!(left_after(|dir| closed(dir, "")), 0);
        assert_eq!(left_after(|dir| fs::remove_dir(dir.host("tmp")).unwrap()), 0);
        let linked = |dir: &StageDir| {
            fs::remove_dir(dir.host("work")).unwrap();
            std::os::unix::fs::symlink("home", dir.host("work")).unwrap();
        };
        assert_eq!(left_after(linked), 0);
    }
}
