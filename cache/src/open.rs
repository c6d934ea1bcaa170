//! Opening a store: its format, its directories, and recovery after an unclean stop.

use crate::atomic_write;
use crate::error::{Error, Result};
use crate::fs::{if_allowed, metadata};
use crate::regular_file::{kind, read_own};
use crate::shared;
use crate::store::Store;
use std::path::Path;
use std::time::Duration;

/// The version of the layout. Raise it when a program that supports only the old version would misread the
/// new one.
const FORMAT: &str = "1";

const FOLDERS: [&str; 9] = [
    "blobs", "actions", "memos", "derived", "stat", "scratch", "damaged", "locks", "tmp",
];

/// The further directories of a store that several hosts share.
const SHARED_FOLDERS: [&str; 3] = ["locks/owners", "jobs", "programs"];

impl Store {
    /// Opens the store under `home`, and creates it if it does not exist. A user with only read permission
    /// can open an existing store. After an unclean stop of the machine, files written since the last
    /// [`Store::flush`] are hashed again first.
    ///
    /// # Errors
    /// When the directory cannot be created, or holds a store of another format.
    pub fn open(home: &Path) -> Result<Self> {
        Self::open_as(home, None)
    }

    /// Opens the store as [`Store::open`] does, where processes of several hosts use it at once, over NFS or
    /// a like file system. Its locks are leases in files: an owner that shows no sign of life for `takeover`
    /// loses them. All processes that use such a store open it so, with about the same `takeover`.
    ///
    /// # Errors
    /// When the directory cannot be created, or holds a store of another format.
    pub fn open_shared(home: &Path, takeover: Duration) -> Result<Self> {
        Self::open_as(home, Some(takeover))
    }

    fn open_as(home: &Path, takeover: Option<Duration>) -> Result<Self> {
        let format = home.join("format");
        // Anything but a number is damage: a power failure can leave a new store with a format file that is
        // empty or filled with zeros.
        let known = read_own(&format)?
            .map(|text| {
                String::from_utf8_lossy(&text)
                    .trim_matches(['\0', '\n', ' '])
                    .to_owned()
            })
            .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(text) = &known
            && text != FORMAT
        {
            return Err(Error::Format {
                path: home.to_owned(),
                found: text.chars().take(20).collect::<String>().escape_debug().to_string(),
                expected: FORMAT,
            });
        }
        let more = takeover.map_or(&[][..], |_| &SHARED_FOLDERS[..]);
        for folder in FOLDERS.iter().chain(more) {
            let folder = home.join(folder);
            let created = create(&folder);
            match known {
                // A user with only read permission does without the directory.
                Some(_) => drop(if_allowed(created)?),
                None => created?,
            }
        }
        // Absolute paths keep the store, and its locks, independent of the current directory.
        let store = Self::at(std::path::absolute(home).map_err(Error::io("open", home))?, takeover);
        if known.is_none() {
            atomic_write::replace(store.root(), &format, &format!("{FORMAT}\n"))?;
        }
        // Without recovery, blobs are still checked on their first use in each process. Hosts that share a
        // store differ in their boot ids, and the server keeps what it has acknowledged.
        if !store.is_shared() {
            if_allowed(store.recover())?;
        }
        Ok(store)
    }
}

/// Creates a directory of the store. A dangling link may point to a disk that is not mounted, so it is not
/// moved away.
fn create(folder: &Path) -> Result<()> {
    let obstacle = |path: &Path| {
        let meta = metadata(path).ok()??;
        let path = path.to_owned();
        (!path.is_dir()).then(|| Error::Obstacle {
            found: kind(&meta),
            path,
        })
    };
    shared::create_dir_all(folder).map_err(|err| {
        folder
            .ancestors()
            .find_map(obstacle)
            .unwrap_or_else(|| Error::io("create", folder)(err))
    })
}
