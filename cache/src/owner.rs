//! Owners of leases, on a store that several hosts share: one a process, a file `locks/owners/ID`.
//!
//! An owner exists for as long as its process holds a guard, a lock or a file being written, and shows that
//! it is alive nine times within `takeover`. One that could not do so for two thirds of `takeover` has lost
//! all that it held, for good: it removes its file, and its process goes on as another owner. So it gives up
//! before any other takes over.
//!
//! `gc` is an owner with a marker, `ID.gc`, in the same directory. Owner and `gc` first create their file
//! there and then list the directory: at least one of two sees the other. Each collection begins an *epoch*,
//! `epoch.N`, a hard link to its marker; the locks of an epoch stand in a directory of their own, `locks/N`,
//! and those of earlier ones are removed. Whoever finds the marker of a dead `gc` removes it, and then a `gc`
//! that wakes up too late can begin no epoch.

use crate::error::{Error, Result};
use crate::fs::if_exists;
use crate::life::{Life, Observer, Owned, Place, uptime};
use crate::listing::entries;
use crate::parallel::locked;
use crate::shared;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

/// The longest wait for a `gc`.
const WAIT: Duration = Duration::from_secs(3600);

/// The shortest time of a takeover.
const SHORTEST: Duration = Duration::from_millis(100);

/// The suffix of the marker of `gc`.
const GC: &str = ".gc";

/// The prefix of the name of an epoch.
const EPOCH: &str = "epoch.";

/// This process among the owners of a store.
#[derive(Debug)]
pub(crate) struct Members {
    pub root: PathBuf,
    folder: PathBuf,
    pub takeover: Duration,
    pub observer: Observer,
    current: Mutex<Weak<Owner>>,
}

/// The shared stores that this process has opened, by their roots.
static MEMBERS: LazyLock<Mutex<BTreeMap<PathBuf, Arc<Members>>>> = LazyLock::new(Mutex::default);

impl Members {
    /// This process among the owners of a store; `None` where the store is that of one host.
    pub(crate) fn of(root: &Path) -> Option<Arc<Self>> {
        locked(&MEMBERS).get(root).cloned()
    }

    /// Makes the store at `root` one that several hosts share.
    pub(crate) fn share(root: &Path, takeover: Duration) -> Arc<Self> {
        let new = || Arc::new(Self::new(root, takeover, Place::here()));
        Arc::clone(locked(&MEMBERS).entry(root.to_owned()).or_insert_with(new))
    }

    pub(crate) fn new(root: &Path, takeover: Duration, place: Place) -> Self {
        let takeover = takeover.max(SHORTEST);
        Self {
            root: root.to_owned(),
            folder: root.join("locks/owners"),
            takeover,
            observer: Observer::new(place, takeover),
            current: Mutex::default(),
        }
    }

    /// The longest wait for a silent holder: until it is dead, or gives a sign of life.
    pub(crate) fn silence(&self) -> Duration {
        self.takeover * 2
    }

    /// Looks at an owner.
    pub(crate) fn look(&self, owner: &str) -> Result<(Life, Option<Owned>)> {
        self.observer.look(&self.folder.join(owner), owner)
    }

    /// The owner of this process. Waits for a running `gc`.
    ///
    /// # Errors
    /// When the owner's file cannot be written, or `gc` runs for an hour ([`Error::Locked`]).
    pub(crate) fn owner(&self) -> Result<Arc<Owner>> {
        let began = Instant::now();
        loop {
            let mut current = locked(&self.current);
            let holder = match current.upgrade().filter(|owner| owner.is_alive()) {
                Some(owner) if owner.marker.is_none() => return Ok(owner),
                Some(_) => Some(self.name_here()),
                None => match self.enter(false)? {
                    Entry::Entered(owner) => {
                        let owner = Arc::new(owner);
                        *current = Arc::downgrade(&owner);
                        return Ok(owner);
                    }
                    Entry::Blocked(holder) => holder,
                },
            };
            drop(current);
            if began.elapsed() >= WAIT {
                return Err(Error::Locked {
                    path: self.folder.clone(),
                    seconds: WAIT.as_secs(),
                    holder,
                });
            }
            std::thread::sleep(self.poll());
        }
    }

    /// An owner that excludes all others, for `gc`. Waits until it knows of silent owners whether they are
    /// dead.
    ///
    /// # Errors
    /// [`Error::Busy`] when another owner is alive.
    pub(crate) fn exclusive(&self) -> Result<Arc<Owner>> {
        let busy = |host| {
            Err(Error::Busy {
                path: self.root.clone(),
                host,
            })
        };
        let began = Instant::now();
        // Without the marker yet, which makes runs wait.
        loop {
            let mut silent = None;
            for name in self.names()? {
                match self.look_at(&name)? {
                    (Life::Dead, _) => {}
                    (Life::Alive, owned) => return busy(owned),
                    (Life::Silent, owned) => silent = Some(owned),
                }
            }
            match silent {
                None => break,
                Some(owned) if began.elapsed() >= self.silence() => return busy(owned),
                Some(_) => std::thread::sleep(self.poll()),
            }
        }
        let mut current = locked(&self.current);
        if current.upgrade().is_some_and(|owner| owner.is_alive()) {
            return busy(Some(self.name_here()));
        }
        match self.enter(true)? {
            Entry::Entered(owner) => {
                let owner = Arc::new(owner);
                *current = Arc::downgrade(&owner);
                Ok(owner)
            }
            Entry::Blocked(host) => busy(host),
        }
    }

    fn poll(&self) -> Duration {
        (self.takeover / 30).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    fn name_here(&self) -> String {
        Owned::by_this_process(self.observer.place.clone(), self.takeover).to_string()
    }

    /// The names in the directory of owners.
    fn names(&self) -> Result<Vec<String>> {
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok();
        Ok(entries(&self.folder)?.into_iter().filter_map(name).collect())
    }

    /// Looks at the owner of a file in the directory; an epoch is nobody's.
    fn look_at(&self, name: &str) -> Result<(Life, Option<String>)> {
        if name.starts_with(EPOCH) {
            return Ok((Life::Dead, None));
        }
        let (life, owned) = self.look(name.strip_suffix(GC).unwrap_or(name))?;
        Ok((life, owned.map(|owned| owned.to_string())))
    }

    fn enter(&self, exclusive: bool) -> Result<Entry> {
        let mut owner = Owner::start(self, exclusive)?;
        let mut names = self.names()?;
        let (mut dead, mut collector_died) = (Vec::new(), false);
        for name in &names {
            let is_gc = name.ends_with(GC);
            if name.starts_with(EPOCH) || name.starts_with(owner.id()) || !(is_gc || exclusive) {
                continue;
            }
            match self.look_at(name)? {
                (Life::Dead, _) if is_gc => {
                    collector_died = true;
                    remove(&self.folder.join(name))?;
                }
                (Life::Dead, _) => dead.push(name.clone()),
                (_, holder) => return Ok(Entry::Blocked(holder)),
            }
        }
        if collector_died {
            // It may have begun an epoch before its marker was removed.
            names = self.names()?;
        }
        let epochs = names.iter().filter_map(|name| name.strip_prefix(EPOCH));
        owner.epoch = epochs.filter_map(|n| n.parse().ok()).max().unwrap_or(0);
        if let Some(marker) = &owner.marker {
            owner.epoch += 1;
            let epoch = self.folder.join(format!("{EPOCH}{}", owner.epoch));
            match std::fs::hard_link(marker, &epoch) {
                Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {
                    return Ok(Entry::Blocked(None));
                }
                linked => linked.map_err(Error::io("link", &epoch))?,
            }
        }
        if !owner.is_alive() {
            return Ok(Entry::Blocked(None));
        }
        for name in dead {
            remove(&self.folder.join(name))?;
        }
        Ok(Entry::Entered(owner))
    }

    /// Removes the locks of the epochs before that of a `gc`.
    pub(crate) fn remove_old_epochs(&self, collector: &Owner) -> Result<()> {
        let locks = self.root.join("locks");
        let is_old = |n: &str| n.parse::<u64>().is_ok_and(|n| n < collector.epoch);
        for entry in entries(&locks)? {
            if collector.is_alive() && entry.file_name().to_str().is_some_and(is_old) {
                let path = entry.path();
                if_exists(std::fs::remove_dir_all(&path), "remove", &path)?;
            }
        }
        for name in self.names()? {
            if collector.is_alive() && name.strip_prefix(EPOCH).is_some_and(is_old) {
                remove(&self.folder.join(name))?;
            }
        }
        Ok(())
    }
}

/// The result of an attempt to become an owner.
enum Entry {
    Entered(Owner),
    /// Another owner, named if it is known, excludes this one.
    Blocked(Option<String>),
}

/// This process as the owner of what it holds. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Owner {
    pulse: Arc<Pulse>,
    /// The marker of `gc`.
    marker: Option<PathBuf>,
    epoch: u64,
    /// The number of the next temporary file.
    next: AtomicU64,
}

/// The part of an owner that the thread which renews it shares.
#[derive(Debug)]
struct Pulse {
    id: String,
    path: PathBuf,
    takeover: Duration,
    /// The time in milliseconds at which the last successful renewal began.
    renewed: AtomicU64,
    lost: AtomicBool,
    /// The count of renewals; `None` when they have ended.
    count: Mutex<Option<u64>>,
    wake: Condvar,
}

impl Owner {
    /// Writes the file of a new owner, and the marker of `gc`, and starts renewing it.
    fn start(members: &Members, exclusive: bool) -> Result<Self> {
        let id = new_id();
        let path = members.folder.join(&id);
        let renewed = AtomicU64::new(now());
        let owned = Owned::by_this_process(members.observer.place.clone(), members.takeover);
        let text = serde_json::to_vec(&owned).map_err(|err| Error::io("encode", &path)(err.into()))?;
        if !members.folder.is_dir() {
            shared::create_dir_all(&members.folder).map_err(Error::io("create", &members.folder))?;
        }
        write_new(&path, &text)?;
        let pulse = Arc::new(Pulse {
            id,
            takeover: members.takeover,
            renewed,
            lost: AtomicBool::new(false),
            count: Mutex::new(Some(0)),
            wake: Condvar::new(),
            path,
        });
        let mut owner = Self {
            pulse: Arc::clone(&pulse),
            marker: None,
            epoch: 0,
            next: AtomicU64::new(0),
        };
        let thread = std::thread::Builder::new().name("lease".to_owned());
        thread
            .spawn(move || pulse.beat())
            .map_err(Error::io("start a thread for", &members.folder))?;
        if exclusive {
            let marker = members.folder.join(format!("{}{GC}", owner.id()));
            write_new(&marker, b"")?;
            owner.marker = Some(marker);
        }
        Ok(owner)
    }

    pub(crate) fn id(&self) -> &str {
        &self.pulse.id
    }

    /// The directory of the locks of its epoch.
    pub(crate) fn locks(&self, root: &Path) -> PathBuf {
        root.join("locks").join(self.epoch.to_string())
    }

    /// A new name for a temporary file.
    pub(crate) fn temp_name(&self) -> String {
        format!("lease-{}-{}", self.id(), self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// False from the moment on at which others may take over what this owner holds.
    pub(crate) fn is_alive(&self) -> bool {
        self.pulse.is_alive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A renewal that is under way ends first.
        *locked(&self.pulse.count) = None;
        self.pulse.wake.notify_all();
        // What cannot be removed counts as dead when this process has ended.
        if let Some(marker) = &self.marker {
            let _ = std::fs::remove_file(marker);
        }
        let _ = std::fs::remove_file(&self.pulse.path);
    }
}

impl Pulse {
    fn is_alive(&self) -> bool {
        let silent = now().saturating_sub(self.renewed.load(Ordering::SeqCst));
        if Duration::from_millis(silent) * 3 >= self.takeover * 2 {
            self.lost.store(true, Ordering::SeqCst);
        }
        !self.lost.load(Ordering::SeqCst)
    }

    /// Renews the owner until it is dropped or lost.
    fn beat(&self) {
        let mut count = locked(&self.count);
        while let Some(beats) = *count {
            if beats > 0 {
                let began = now();
                let is_there = self.renew(beats);
                if is_there == Some(false) {
                    self.lost.store(true, Ordering::SeqCst);
                }
                // First: a renewal that took too long came too late.
                if !self.is_alive() {
                    let _ = std::fs::remove_file(&self.path);
                    return;
                }
                if is_there == Some(true) {
                    self.renewed.store(began, Ordering::SeqCst);
                }
            }
            *count = Some(beats + 1);
            let waited = self.wake.wait_timeout(count, self.takeover / 9);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives a sign of life, which takes no space on the disk. Returns whether the owner's file still exists,
    /// or `None` if that is not known.
    fn renew(&self, count: u64) -> Option<bool> {
        if !self.is_alive() {
            return None;
        }
        let sign = SystemTime::UNIX_EPOCH + Duration::from_secs(count);
        match File::open(&self.path).and_then(|file| file.set_modified(sign)) {
            Ok(()) => Some(true),
            Err(err) if err.kind() == ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }
}

/// Creates a file that other users of a group's store may read.
pub(crate) fn write_new(path: &Path, text: &[u8]) -> Result<File> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(text)?;
        shared::share_file(path)?;
        Ok(file)
    });
    written.map_err(|err| {
        let _ = std::fs::remove_file(path);
        Error::io("write", path)(err)
    })
}

fn remove(path: &Path) -> Result<()> {
    if_exists(std::fs::remove_file(path), "remove", path).map(drop)
}

fn now() -> u64 {
    u64::try_from(uptime().as_millis()).unwrap_or(u64::MAX)
}

/// A new random name.
fn new_id() -> String {
    let mut hasher = blake3::Hasher::new();
    for _ in 0..4 {
        // The system's random numbers are in its keys.
        hasher.update(&RandomState::new().hash_one(0).to_le_bytes());
    }
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    hasher.update(&since.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}
