//! Several threads and processes on one store.

use crate::{Home, TAKEOVER, action_key};
use cache::{Error, GcPlan, Store};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Not a test: the body of a second process, started by the tests below with the store in its environment.
#[test]
#[ignore = "the body of a child process of other tests"]
fn child() {
    let variable = |name| std::env::var(name).expect("a test starts this as a child process");
    let home = variable("CACHE_TEST_HOME");
    let store = match variable("CACHE_TEST_SHARED").as_str() {
        "true" => Store::open_shared(Path::new(&home), TAKEOVER).unwrap(),
        _ => Store::open(Path::new(&home)).unwrap(),
    };
    match variable("CACHE_TEST_TASK").as_str() {
        "hold" => {
            let _lock = store.lock(action_key("a")).unwrap();
            let _guard = store.guard().unwrap();
            println!("\nholding");
            std::thread::sleep(Duration::from_secs(600));
        }
        "count" => {
            for _ in 0..100 {
                let _lock = store.lock(action_key("a")).unwrap();
                increment(&store);
            }
        }
        "put" => put_many(&store),
        task => panic!("{task}"),
    }
}

fn spawn(store: &Store, task: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "concurrent::child", "--ignored", "--nocapture"])
        .env("CACHE_TEST_HOME", store.root())
        .env("CACHE_TEST_SHARED", store.is_shared().to_string())
        .env("CACHE_TEST_TASK", task)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A read and a write that must not interleave with those of a second holder of the lock.
fn increment(store: &Store) {
    let path = store.root().join("count");
    let count: u32 = std::fs::read_to_string(&path).map_or(0, |text| text.parse().unwrap());
    std::fs::write(&path, (count + 1).to_string()).unwrap();
}

/// A child process has copies of all open files until it executes its program. A lock that is dropped
/// meanwhile is released all the same.
#[test]
fn locks_are_released_although_a_child_process_is_being_started() {
    let home = Home::new();
    let (lock, guard) = (home.store.lock(action_key("a")).unwrap(), home.store.guard().unwrap());
    let (mut hold, mut go) = std::io::pipe().unwrap();
    let mut command = Command::new("true");
    // SAFETY: between fork and exec only a read from a pipe.
    #[expect(unsafe_code, reason = "keeps the child between fork and exec")]
    unsafe {
        command.pre_exec(move || hold.read(&mut [0]).map(drop));
    }
    // Starting it returns when its program is executed.
    let starting = std::thread::spawn(move || command.status().unwrap());
    std::thread::sleep(Duration::from_millis(100));
    drop((lock, guard));
    assert!(home.reopen().try_lock(action_key("a")).unwrap().is_some());
    home.store
        .gc(&GcPlan {
            keep_actions: BTreeSet::new(),
            keep_younger_than: Duration::ZERO,
            now: SystemTime::now(),
            dry_run: false,
        })
        .unwrap();
    go.write_all(b"!").unwrap();
    assert!(starting.join().unwrap().success());
}

fn put_many(store: &Store) {
    for i in 0..200_u32 {
        let bytes: Vec<u8> = i.to_le_bytes().repeat(500 + i as usize);
        let blob = store.put(&bytes).unwrap();
        let mut writer = store.writer().unwrap();
        writer.put(&bytes).unwrap();
        assert_eq!(writer.finish().unwrap(), blob);
        assert_eq!(*store.blob(blob.blob).unwrap(), bytes[..]);
    }
}

/// Tests a store of one host and one of several.
fn both(test: impl Fn(&Home)) {
    test(&Home::new());
    test(&Home::shared());
}

fn sweep(store: &Store) -> Result<(), Error> {
    store
        .gc(&GcPlan {
            keep_actions: BTreeSet::new(),
            keep_younger_than: Duration::from_secs(3600),
            now: SystemTime::now(),
            dry_run: false,
        })
        .map(|_| ())
}

#[test]
fn simultaneous_puts_agree() {
    both(|home| {
        let mut children = [spawn(&home.store, "put"), spawn(&home.store, "put")];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| put_many(&home.reopen()));
            }
        });
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        let report = home.store.verify(|_| {}).unwrap();
        assert_eq!(report.blobs, 200);
        assert!(report.is_clean());
        assert_eq!(home.store.status().unwrap().tmp.count, 0);
    });
}

#[test]
fn one_holder_at_a_time_among_threads_and_processes() {
    both(|home| {
        let mut children = [spawn(&home.store, "count"), spawn(&home.store, "count")];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _lock = home.store.lock(action_key("a")).unwrap();
                        increment(&home.store);
                    }
                });
            }
            // Meanwhile `gc` removes lock files without a holder.
            scope.spawn(|| {
                for _ in 0..100 {
                    // A child process of another test holds the lock of the last collection between its fork
                    // and its exec.
                    match sweep(&home.store) {
                        Ok(()) | Err(Error::Busy { .. }) => {}
                        Err(err) => panic!("{err}"),
                    }
                }
            });
        });
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(std::fs::read_to_string(home.store.root().join("count")).unwrap(), "400");
    });
}

#[test]
fn a_lock_ends_with_its_holder() {
    both(|home| {
        let mut child = spawn(&home.store, "hold");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        assert!(stdout.lines().any(|line| line.unwrap() == "holding"));
        assert!(home.store.try_lock(action_key("a")).unwrap().is_none());
        assert!(home.store.try_lock(action_key("b")).unwrap().is_some());
        assert!(matches!(sweep(&home.store), Err(Error::Busy { .. })));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(home.store.try_lock(action_key("a")).unwrap().is_some());
        sweep(&home.store).unwrap();
    });
}

#[test]
fn runs_share_the_store_and_gc_does_not() {
    both(|home| {
        let first = home.store.guard().unwrap();
        let second = home.store.guard().unwrap();
        drop(first);
        assert!(matches!(sweep(&home.store), Err(Error::Busy { .. })));
        drop(second);
        sweep(&home.store).unwrap();
    });
}

#[test]
fn two_runs_that_want_one_action_compute_it_once() {
    both(|home| {
        let computed = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let store = home.reopen();
                    let _lock = store.lock(action_key("a")).unwrap();
                    if store.action(action_key("a")).unwrap().is_none() {
                        computed.fetch_add(1, Ordering::Relaxed);
                        home.action("a");
                    }
                });
            }
        });
        assert_eq!(computed.into_inner(), 1);
    });
}
