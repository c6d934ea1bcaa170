//! One store and several users: a group that shares it, and a user who may only read it.
//!
//! The commands run as users of their own (`setpriv`), which only root can arrange; elsewhere these tests are
//! listed as ignored.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::{Ended, Project, files, runner};
use runner_testkit::{PipelineText, pipeline};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, ExitCode};

fn desk() -> PipelineText {
    pipeline("shared")
        .param("word", "one")
        .run("a", "cat in.txt > ${outputs.x}; echo made")
        .set("files", "[in.txt]")
        .run(
            "b",
            "cat ${needs.x} > ${outputs.x}; echo ${params.word} >> ${outputs.x}",
        )
        .needs("x", "a")
        .output("x", "y.txt")
}

/// The group of the store, and users in it and outside.
const GROUP: u32 = 61_000;
const ALICE: (u32, u32) = (61_001, GROUP);
const BOB: (u32, u32) = (61_002, GROUP);
const CAROL: (u32, u32) = (61_003, 61_003);

fn main() -> ExitCode {
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    let missing = (!is_root || !has_setpriv).then_some("not root, or no setpriv");
    requirements::run(vec![
        trial("a_group_shares_a_store", missing, a_group_shares_a_store),
        trial("a_cached_run_needs_no_write", missing, a_cached_run_needs_no_write),
        trial(
            "a_store_of_one_user_stays_closed",
            missing,
            a_store_of_one_user_stays_closed,
        ),
    ])
}

/// A project that everyone can read, with the binary in it.
fn project() -> Project {
    let project = Project::new(desk());
    project.write("in.txt", "in\n");
    let open = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open(&project.path("."), 0o755);
    // Its usual directory may be closed to others.
    fs::copy(runner(), project.path("runner")).unwrap();
    open(&project.path("runner"), 0o755);
    fs::create_dir(project.home()).unwrap();
    project
}

/// A command of a user with the umask 022.
fn run(project: &Project, (user, group): (u32, u32), args: &[&str]) -> Ended {
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={user}"),
        &format!("--regid={group}"),
        "--clear-groups",
        "sh",
        "-c",
        "umask 022; exec \"$0\" \"$@\"",
    ]);
    command.arg(project.path("runner")).args(args);
    project
        .at_home(&mut command)
        .env("HOME", "/nowhere")
        .output()
        .unwrap()
        .into()
}

fn exec(project: &Project, user: (u32, u32), args: &[&str]) -> Ended {
    let ended = run(
        project,
        user,
        &[&["exec", "p.yaml", "--json", "--jobs", "1"], args].concat(),
    );
    assert_eq!(ended.code, 0, "{user:?} {}", ended.text());
    ended
}

fn a_group_shares_a_store() {
    let project = project();
    chown(project.home(), Some(ALICE.0), Some(GROUP)).unwrap();
    fs::set_permissions(project.home(), Permissions::from_mode(0o2775)).unwrap();
    let first = exec(&project, ALICE, &["--name", "first"]);
    assert_eq!(first.log(), "ran a\nran b");
    assert_eq!(exec(&project, BOB, &[]).log(), "cached a\ncached b");
    assert_eq!(exec(&project, BOB, &["--set", "word=two"]).log(), "cached a\nran b");
    assert_eq!(
        exec(&project, ALICE, &["--set", "word=two"]).log(),
        "cached a\ncached b"
    );
    // Each computes what the other computed, and damages are healed by whoever finds them.
    assert_eq!(
        exec(&project, BOB, &["--force", "a", "--force", "b", "--name", "second"]).log(),
        "ran a\nran b"
    );
    let blob = files(&project.home().join("blobs"))
        .into_iter()
        .find(|path| fs::read(path).unwrap() == b"in\n")
        .unwrap();
    fs::set_permissions(&blob, Permissions::from_mode(0o644)).unwrap();
    fs::write(&blob, b"xx\n").unwrap();
    fs::set_permissions(&blob, Permissions::from_mode(0o444)).unwrap();
    let damaged = run(&project, BOB, &["cache", "verify"]);
    assert_eq!(damaged.code, 3, "{}", damaged.text());
    assert_eq!(exec(&project, ALICE, &[]).log(), "ran a\ncached b");
    for user in [ALICE, BOB] {
        let runs = run(&project, user, &["runs", "--json"]);
        assert!(
            runs.stdout.contains("first") && runs.stdout.contains("second"),
            "{}",
            runs.text()
        );
        for args in [
            &["cache", "verify"][..],
            &["cache", "status"],
            &["show", "first"],
            &["runs", "tag", "first", "good"],
            &["cache", "gc", "--keep-last", "1", "--keep-younger-than", "0s"],
        ] {
            let ended = run(&project, user, args);
            assert_eq!(ended.code, 0, "{user:?} {args:?}: {}", ended.text());
        }
    }
    assert_eq!(
        files(&project.home().join("tmp")),
        [""; 0].map(Into::<std::path::PathBuf>::into)
    );
    assert_eq!(exec(&project, BOB, &[]).log(), "cached a\ncached b");
    // Nobody else may write.
    let ended = run(&project, CAROL, &["exec", "p.yaml", "--set", "word=three"]);
    assert_eq!(ended.code, 3, "{}", ended.text());
}

/// The names, sizes and times of all files.
fn state(dir: &Path) -> Vec<(std::path::PathBuf, u64, i64, i64)> {
    let of = |path: std::path::PathBuf| {
        let meta = fs::symlink_metadata(&path).unwrap();
        (path, meta.size(), meta.mtime(), meta.mtime_nsec())
    };
    files(dir).into_iter().map(of).collect()
}

fn a_cached_run_needs_no_write() {
    let project = project();
    chown(project.home(), Some(ALICE.0), Some(GROUP)).unwrap();
    fs::set_permissions(project.home(), Permissions::from_mode(0o755)).unwrap();
    let first = exec(&project, ALICE, &[]);
    assert_eq!(first.log(), "ran a\nran b");
    let before = state(&project.home());
    for _ in 0..2 {
        let read = exec(&project, CAROL, &[]);
        assert_eq!(read.log(), "cached a\ncached b");
        assert_eq!(read.digests(), first.digests());
        assert!(read.stderr.contains("the run is not recorded"), "{}", read.stderr);
    }
    // Another working directory, and a store whose lock files and markers are gone.
    for name in ["locks", "unflushed", "derived", "stat"] {
        let path = project.home().join(name);
        let all = if path.is_dir() { files(&path) } else { vec![path] };
        for path in all {
            let _ = fs::remove_file(path);
        }
    }
    let shown = run(&project, CAROL, &["exec", "p.yaml"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    assert!(shown.stdout.contains("2 cached"), "{}", shown.text());
    for args in [
        &["plan", "p.yaml"][..],
        &["runs"],
        &["show", "latest"],
        &["cache", "status"],
        &["cache", "verify"],
        &["why", "p.yaml", "b"],
    ] {
        let ended = run(&project, CAROL, args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.text());
    }
    let after = state(&project.home());
    assert!(after.iter().all(|file| before.contains(file)), "nothing is written");
    // What has to run, fails, and says why.
    let ended = run(&project, CAROL, &["exec", "p.yaml", "--set", "word=two"]);
    assert_eq!(ended.code, 3, "{}", ended.text());
    assert!(ended.text().contains("Permission denied"), "{}", ended.text());
    assert!(ended.stderr.contains("RUNNER_HOME"), "{}", ended.stderr);
}

fn a_store_of_one_user_stays_closed() {
    let project = project();
    chown(project.home(), Some(ALICE.0), Some(GROUP)).unwrap();
    fs::set_permissions(project.home(), Permissions::from_mode(0o755)).unwrap();
    exec(&project, ALICE, &[]);
    for path in files(&project.home()) {
        for path in path.ancestors().take_while(|path| path.starts_with(project.home())) {
            let mode = fs::metadata(path).unwrap().mode();
            assert_eq!(mode & 0o022, 0, "{} has mode {mode:o}", path.display());
        }
    }
}
