//! Several processes on one store, each in a place of its own, as on a host of its own.

use super::*;
use crate::life::Place;
use crate::{ActionLock, Store};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TAKEOVER: Duration = Duration::from_millis(600);
/// Far longer than any test.
const NEVER: Duration = Duration::from_secs(600);

/// Not a test: the body of a process, which obeys the lines of its standard input.
#[test]
#[ignore = "the body of a child process of other tests"]
fn child() {
    let variable = |name| std::env::var(name).expect("a test starts this as a child process");
    let place = match variable("LEASE_TEST_PLACE").as_str() {
        "" => Place::here(),
        name => Place::named(name),
    };
    let takeover = Duration::from_millis(variable("LEASE_TEST_TAKEOVER").parse().unwrap());
    let members = Members::new(Path::new(&variable("LEASE_TEST_HOME")), takeover, place);
    let (mut leases, mut owners) = (BTreeMap::new(), Vec::new());
    println!();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let answer = match line.split_once(' ').unwrap_or((&line, "")) {
            ("take", name) => match members.try_acquire(name).unwrap() {
                Attempt::Taken(lease) => {
                    leases.insert(name.to_owned(), lease);
                    true
                }
                Attempt::Held { .. } => false,
            },
            ("is_held", name) => leases[name].is_held(),
            ("release", name) => leases.remove(name).is_some(),
            ("gc", _) => {
                owners.push(members.exclusive().unwrap());
                true
            }
            ("is_exclusive", _) => owners[0].is_alive(),
            (line, _) => panic!("{line}"),
        };
        println!("answer {answer}");
    }
}

/// A process that is killed when the value is dropped.
struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn new(home: &Path, place: &str, takeover: Duration) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lease::tests::child", "--ignored", "--nocapture"])
            .env("LEASE_TEST_HOME", home)
            .env("LEASE_TEST_PLACE", place)
            .env("LEASE_TEST_TAKEOVER", takeover.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn ask(&mut self, line: &str) -> bool {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
        loop {
            let mut answer = String::new();
            assert_ne!(self.answers.read_line(&mut answer).unwrap(), 0, "it ended");
            match answer.trim() {
                "answer true" => return true,
                "answer false" => return false,
                _ => {}
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn home() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    Store::open_shared(dir.path(), NEVER).unwrap();
    dir
}

fn take(members: &Members, name: &str) -> Option<Lease> {
    match members.try_acquire(name).unwrap() {
        Attempt::Taken(lease) => Some(lease),
        Attempt::Held { .. } => None,
    }
}

/// Waits for a lock.
fn wait_for(members: &Members, name: &str) -> (Lease, Duration) {
    let began = Instant::now();
    loop {
        if let Some(lease) = take(members, name) {
            return (lease, began.elapsed());
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_lock_has_one_holder_and_is_released() {
    let home = home();
    let [here, there] = ["a", "b"].map(|place| Members::new(home.path(), NEVER, Place::named(place)));
    for round in 1..4 {
        let lease = take(&here, "x").unwrap();
        assert!(lease.is_held() && take(&here, "x").is_none() && take(&there, "x").is_none());
        assert!(take(&there, "y").is_some());
        drop(lease);
        let lease = take(&there, "x").unwrap();
        assert!(take(&here, "x").is_none());
        assert_eq!(lease.path, home.path().join(format!("locks/0/x.{}", 2 * round)));
    }
    let owners = std::fs::read_dir(home.path().join("locks/owners")).unwrap();
    assert_eq!(owners.count(), 0, "nobody holds anything");
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

/// Eight hosts race for the ten locks of a host that was killed.
#[test]
fn a_dead_hosts_locks_are_taken_over_once_each() {
    let home = home();
    let mut victim = Process::new(home.path(), "victim", TAKEOVER);
    let names: Vec<String> = (0..10).map(|n| format!("lock-{n}")).collect();
    assert!(names.iter().all(|name| victim.ask(&format!("take {name}"))));
    victim.signal(Signal::KILL);
    let killed = Instant::now();
    let inside: Vec<_> = names.iter().map(|_| AtomicUsize::new(0)).collect();
    let won = Mutex::new(BTreeMap::<usize, usize>::new());
    std::thread::scope(|scope| {
        let race = |host| {
            let members = Members::new(home.path(), TAKEOVER, Place::named(&format!("host-{host}")));
            let (names, inside, won) = (&names, &inside, &won);
            scope.spawn(move || {
                let mut held = Vec::new();
                while won.lock().unwrap().len() < names.len() {
                    for (n, name) in names.iter().enumerate() {
                        let Some(lease) = take(&members, name) else { continue };
                        assert!(killed.elapsed() >= TAKEOVER);
                        assert_eq!(inside[n].fetch_add(1, Ordering::SeqCst), 0, "two holders");
                        assert!(lease.is_held());
                        *won.lock().unwrap().entry(n).or_default() += 1;
                        held.push(lease);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                held
            })
        };
        let threads: Vec<_> = (0..8).map(race).collect();
        let held: Vec<Lease> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert!(held.len() == names.len() && held.iter().all(Lease::is_held));
    });
    assert!(won.into_inner().unwrap().values().all(|&times| times == 1));
}

#[test]
fn a_process_that_was_stopped_has_lost_its_locks_for_good() {
    let home = home();
    let mut sleeper = Process::new(home.path(), "sleeper", TAKEOVER);
    let here = Members::new(home.path(), TAKEOVER, Place::named("here"));
    assert!(sleeper.ask("take x") && sleeper.ask("take y"));
    std::thread::sleep(TAKEOVER * 2);
    assert!(take(&here, "x").is_none(), "it is alive");
    sleeper.signal(Signal::STOP);
    let (lease, _) = wait_for(&here, "x");
    sleeper.signal(Signal::CONT);
    assert!(!sleeper.ask("is_held x") && !sleeper.ask("is_held y"));
    assert!(!sleeper.ask("take x"), "it has another holder");
    // It goes on as another owner; nobody has taken its other lock meanwhile.
    assert!(
        sleeper.ask("take y") || {
            std::thread::sleep(TAKEOVER * 2);
            sleeper.ask("take y")
        }
    );
    assert!(lease.is_held());
    // The late release of what it lost frees nothing.
    assert!(sleeper.ask("release x"));
    assert!(take(&Members::new(home.path(), TAKEOVER, Place::named("third")), "x").is_none());
}

#[test]
fn a_process_of_this_host_that_was_killed_frees_its_locks_at_once() {
    let home = home();
    let mut victim = Process::new(home.path(), "", NEVER);
    let here = Members::new(home.path(), NEVER, Place::here());
    assert!(victim.ask("take x"));
    assert!(take(&here, "x").is_none());
    victim.signal(Signal::KILL);
    let (_lease, waited) = wait_for(&here, "x");
    assert!(waited < Duration::from_secs(10));
}

#[test]
fn a_collector_and_owners_exclude_each_other() {
    let home = home();
    let [here, there] =
        ["here", "there"].map(|place| Members::new(home.path(), TAKEOVER, Place::named(place)));
    let lease = take(&there, "x").unwrap();
    let busy = here.exclusive().unwrap_err().to_string();
    assert!(busy.contains("in use by a run on there (process "), "{busy}");
    assert!(there.exclusive().is_err());
    drop(lease);
    let collector = here.exclusive().unwrap();
    assert!(there.exclusive().is_err());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&there, "x").unwrap());
        std::thread::sleep(TAKEOVER);
        assert!(!waiting.is_finished());
        here.remove_old_epochs(&collector).unwrap();
        assert!(!home.path().join("locks/0").exists());
        drop(collector);
        let lease = waiting.join().unwrap();
        assert_eq!(lease.path, home.path().join("locks/1/x.1"));
    });
}

/// It has removed nothing yet, or all: a lock that it would remove is never held.
#[test]
fn a_collector_that_was_stopped_is_taken_over() {
    let home = home();
    let mut sleeper = Process::new(home.path(), "sleeper", TAKEOVER);
    let here = Members::new(home.path(), TAKEOVER, Place::named("here"));
    assert!(sleeper.ask("gc"));
    sleeper.signal(Signal::STOP);
    let (lease, _) = wait_for(&here, "x");
    sleeper.signal(Signal::CONT);
    assert!(!sleeper.ask("is_exclusive"));
    assert!(lease.is_held());
    assert!(lease.path.starts_with(home.path().join("locks/1")));
    drop((lease, sleeper));
    // One that was killed, and its file, are gone after the next collection.
    let collector = here.exclusive().unwrap();
    here.remove_old_epochs(&collector).unwrap();
    drop(collector);
    let left: Vec<_> = std::fs::read_dir(home.path().join("locks/owners")).unwrap().collect();
    assert_eq!(left.len(), 1, "the epoch: {left:?}");
}

/// Without its marker, a collector begins no epoch.
#[test]
fn an_epoch_is_begun_by_the_marker() {
    let home = home();
    let marker = home.path().join("locks/owners/00.gc");
    write_new(&marker, b"").unwrap();
    let here = Members::new(home.path(), TAKEOVER, Place::named("here"));
    let lease = take(&here, "x").unwrap();
    assert!(!marker.exists(), "its owner has no file: it is dead");
    assert!(lease.path.starts_with(home.path().join("locks/0")));
}

#[test]
fn a_store_of_several_hosts_locks_actions_and_checkpoints() {
    let home = home();
    let store = Store::open_shared(home.path(), NEVER).unwrap();
    let key = crate::KeyHasher::new("test").action_key();
    let lock: ActionLock = store.lock(key).unwrap();
    assert!(lock.is_held() && store.try_lock(key).unwrap().is_none());
    drop(lock);
    drop(store.try_lock(key).unwrap().unwrap());
    let mut victim = Process::new(home.path(), "", NEVER);
    let memo = crate::KeyHasher::new("test").memo_key();
    assert!(victim.ask(&format!("take {}", memo.to_hex())));
    victim.signal(Signal::KILL);
    victim.child.wait().unwrap();
    let scratch = store.scratch(memo).unwrap();
    assert_eq!(
        *scratch,
        *store.scratch_path(memo),
        "the directory of the killed process"
    );
    assert_ne!(
        *store.scratch(memo).unwrap(),
        *scratch,
        "a holder that is alive keeps its own"
    );
    assert!(store.guard().unwrap().is_held());
    let flushed = std::fs::exists(home.path().join("unflushed")).unwrap();
    assert!(!flushed, "every file is flushed before its rename");
}
