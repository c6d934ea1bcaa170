//! Signs of life of the owners of leases, on a store that several hosts share.
//!
//! No clocks of two hosts are compared: an owner updates the modification time of its file to a count, and an
//! observer measures by its own clock for how long the count has not changed. Where owner and observer run on
//! one host, the process itself is looked up.

use crate::error::Result;
use crate::parallel::locked;
use crate::regular_file::{Opened, open_own};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// A host, as far as a process id is valid in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub host: String,
    /// The boot id, and the namespace of process ids. Hosts may have the same name.
    instance: String,
}

impl Place {
    /// The place of this process.
    pub(crate) fn here() -> Self {
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            instance: match boot_id() {
                Some(boot) => format!("{boot} {}", namespace.display()),
                None => String::new(),
            },
        }
    }

    /// Another place, as that of another host.
    #[cfg(test)]
    pub(crate) fn named(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            instance: format!("test {host}"),
        }
    }
}

/// The contents of an owner's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Owned {
    #[serde(flatten)]
    pub place: Place,
    pub process: u32,
    /// The start time of the process in clock ticks since the boot.
    started: Option<u64>,
    /// The time in milliseconds after which the owner counts as dead without a sign of life.
    takeover: u64,
}

impl Owned {
    /// This process, in a place.
    pub(crate) fn by_this_process(place: Place, takeover: Duration) -> Self {
        let process = std::process::id();
        Self {
            place,
            process,
            started: read_start(process).and_then(|(_, started)| started),
            takeover: u64::try_from(takeover.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// False if the process has ended.
    fn is_running(&self) -> bool {
        match read_start(self.process) {
            Some((is_over, started)) => !is_over && (self.started.is_none() || started == self.started),
            // Other users' processes may be hidden.
            None => {
                let process = i32::try_from(self.process)
                    .ok()
                    .and_then(rustix::process::Pid::from_raw);
                process.is_some_and(|process| {
                    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
                })
            }
        }
    }
}

impl std::fmt::Display for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (process {})", self.place.host, self.process)
    }
}

/// True if the process has ended and waits for its parent, and its start time; `None` if it cannot be read,
/// as on systems without `/proc`: a process is then known by its id alone, and by its signs of life.
fn read_start(process: u32) -> Option<(bool, Option<u64>)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_over = matches!(fields.next()?, "Z" | "X");
    Some((is_over, fields.nth(18).and_then(|ticks| ticks.parse().ok())))
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It has given a sign of life since it was first looked at, or its process runs on this host.
    Alive,
    /// No sign of life so far, for less than the time of a takeover.
    Silent,
    /// All that it holds is free.
    Dead,
}

/// The signs of life of other owners, as this process has seen them.
#[derive(Debug)]
pub(crate) struct Observer {
    pub place: Place,
    takeover: Duration,
    seen: Mutex<BTreeMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    count: Option<SystemTime>,
    /// The time at which the count was seen first.
    since: Instant,
    has_changed: bool,
}

impl Observer {
    pub(crate) fn new(place: Place, takeover: Duration) -> Self {
        Self {
            place,
            takeover,
            seen: Mutex::default(),
        }
    }

    /// Looks at the file of an owner. Also returns its contents, if the file is there and intact.
    pub(crate) fn look(&self, file: &Path, owner: &str) -> Result<(Life, Option<Owned>)> {
        // A look may take long. The count was read between the two.
        let began = Instant::now();
        // An owner removes its file when it holds nothing any more. Nobody looks for the file before it is
        // there: the owner's name is random, and stands in files that are written later.
        let Some((bytes, meta)) = read_fresh(file)? else {
            return Ok((Life::Dead, None));
        };
        let ended = Instant::now();
        let (owned, count) = (serde_json::from_slice::<Owned>(&bytes).ok(), meta.modified().ok());
        let takeover = owned
            .as_ref()
            .map_or(Duration::ZERO, |owned| Duration::from_millis(owned.takeover))
            .max(self.takeover);
        let mut seen = locked(&self.seen);
        let new = |has_changed| Seen {
            count,
            since: ended,
            has_changed,
        };
        let now = seen.entry(owner.to_owned()).or_insert(new(false));
        if now.count != count {
            *now = new(true);
        }
        let is_here = owned
            .as_ref()
            .is_some_and(|owned| owned.place == self.place && !owned.place.instance.is_empty());
        let life = match &owned {
            _ if began.saturating_duration_since(now.since) >= takeover => Life::Dead,
            Some(owned) if is_here && !owned.is_running() => Life::Dead,
            _ if is_here || now.has_changed => Life::Alive,
            _ => Life::Silent,
        };
        Ok((life, owned))
    }
}

/// Reads a file that another host may have replaced or removed a moment ago. Opening it makes the client of a
/// network file system ask its server.
pub(crate) fn read_fresh(path: &Path) -> Result<Option<(Vec<u8>, Metadata)>> {
    const ATTEMPTS: usize = 3;
    let read = || {
        let Opened::Regular(mut file, meta) = open_own(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(crate::Error::io("read", path))?;
        Ok(Some((bytes, meta)))
    };
    let is_stale = |err: &crate::Error| {
        let code = rustix::io::Errno::STALE.raw_os_error();
        matches!(err, crate::Error::Io { source, .. } if source.raw_os_error() == Some(code))
    };
    let mut found = read();
    for _ in 1..ATTEMPTS {
        match &found {
            Err(err) if is_stale(err) => found = read(),
            _ => break,
        }
    }
    found
}

/// The id of the machine's current boot.
pub(crate) fn boot_id() -> Option<String> {
    #[cfg(target_os = "macos")]
    let id = crate::macos::boot_id();
    #[cfg(not(target_os = "macos"))]
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    Some(id?.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The time since some fixed instant. Time during which the machine is suspended counts, unlike that of
/// [`Instant`]: other hosts' time goes on.
#[cfg(not(target_os = "macos"))]
pub(crate) fn uptime() -> Duration {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::LazyLock;
    // Open once, so that all times are those of one clock.
    static UPTIME: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/uptime").ok());
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let uptime = || {
        let mut text = [0; 64];
        let length = UPTIME.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let seconds = text.split_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    uptime().unwrap_or_else(|| START.elapsed())
}

/// The time since some fixed instant. Time during which the machine is suspended counts here, too: the
/// monotonic clock of macOS goes on, unlike that of [`Instant`].
#[cfg(target_os = "macos")]
pub(crate) fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let here = Owned::by_this_process(Place::here(), Duration::from_secs(1));
        assert!(here.is_running() && here.started.is_some());
        let earlier = Owned {
            started: Some(1),
            ..here.clone()
        };
        assert!(!earlier.is_running(), "another process had this id");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !read_start(child.id()).unwrap().0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let zombie = Owned {
            process: child.id(),
            started: None,
            ..here.clone()
        };
        assert!(!zombie.is_running());
        child.wait().unwrap();
        assert!(
            !Owned {
                process: child.id(),
                ..here
            }
            .is_running()
        );
    }

    #[test]
    fn a_host_of_the_same_name_is_another_place() {
        let here = Place::here();
        assert_eq!(here, Place::here());
        let namesake = Place {
            instance: "another boot".to_owned(),
            ..here.clone()
        };
        assert_ne!(here, namesake);
    }

    #[test]
    fn time_passes() {
        let began = uptime();
        std::thread::sleep(Duration::from_millis(50));
        let passed = uptime() - began;
        assert!(passed >= Duration::from_millis(30), "{passed:?}");
    }
}
