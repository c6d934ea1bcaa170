//! Every command ends in a bounded time, whatever it finds in its home and wherever its output goes.

use crate::{Ended, Project, wait_for};
use runner_testkit::{PipelineText, pipeline};
use runner_testkit::{runner, within};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn two() -> PipelineText {
    pipeline("two")
        .run("a", "echo 1 > ${outputs.x}; echo said")
        .run("b", "cat ${needs.x} > ${outputs.y}")
        .needs("x", "a.x")
}

fn link(path: &Path) {
    std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn socket(path: &Path) {
    // Its path may be longer than a socket's may be.
    let short = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(short.path().join("s")).unwrap());
    std::fs::rename(short.path().join("s"), path).unwrap();
}

fn directory(path: &Path) {
    std::fs::create_dir_all(path.join("inside")).unwrap();
}

/// The name and the maker of what stands in the place of a file.
type Obstacle = (&'static str, fn(&Path));

const OBSTACLES: [Obstacle; 4] = [
    ("link", link),
    ("fifo", fifo),
    ("socket", socket),
    ("directory", directory),
];

fn ends_or_names_the_remedy(ended: &Ended, what: &str) {
    let is_named = ended.code == 3 && ended.text().contains("hint");
    assert!(ended.code == 0 || is_named, "{what}: {}: {}", ended.code, ended.text());
}

#[test]
fn no_file_of_the_home_is_waited_for() {
    let commands: [&[&str]; 9] = [
        &["exec", "p.yaml", "--json"],
        &["plan", "p.yaml"],
        &["why", "p.yaml", "b"],
        &["runs"],
        &["show", "latest"],
        &["show", "latest/a"],
        &["runs", "tag", "latest", "x"],
        &["cache", "status"],
        &["cache", "verify"],
    ];
    // Of the store; of a run.
    let victims: [&[&str]; 2] = [
        &["format", "flushed", "locks/store"],
        &["marks.json", "pipeline.json", "report.html", "brief.json"],
    ];
    for (kind, make) in OBSTACLES {
        for name in victims.concat() {
            let project = Project::new(two());
            let reference = project.exec(&["--name", "first"]);
            assert_eq!(reference.code, 0, "{}", reference.text());
            let latest = std::fs::read_dir(project.home().join("runs")).unwrap().next().unwrap();
            let folders = [project.home(), latest.unwrap().path()];
            let folder = victims
                .iter()
                .zip(folders)
                .find(|(names, _)| names.contains(&name))
                .unwrap()
                .1;
            let victim = folder.join(name);
            std::fs::create_dir_all(victim.parent().unwrap()).unwrap();
            std::fs::remove_file(&victim).ok();
            make(&victim);
            for command in commands {
                let ended = project.run_within(LIMIT, command);
                ends_or_names_the_remedy(&ended, &format!("{kind} in the place of {name}, {command:?}"));
            }
            let last = project.exec(&[]);
            assert_eq!(last.digests(), reference.digests(), "{kind} {name}: {}", last.text());
        }
    }
}

#[test]
fn a_configuration_that_is_no_file_is_named() {
    for (kind, make) in OBSTACLES.into_iter().filter(|(kind, _)| *kind != "link") {
        let project = Project::new(two());
        project.exec(&[]);
        make(&project.home().join("config.yaml"));
        for command in [&["exec", "p.yaml"][..], &["plan", "p.yaml"]] {
            let ended = project.run_within(LIMIT, command);
            ends_or_names_the_remedy(&ended, &format!("{kind}, {command:?}"));
            assert!(ended.text().contains("not a regular file"), "{kind}: {}", ended.text());
        }
    }
}

#[test]
fn results_that_are_no_files_are_computed_again() {
    for (kind, make) in OBSTACLES {
        for folder in ["blobs", "actions", "derived", "locks"] {
            let project = Project::new(two());
            let reference = project.exec(&[]);
            for victim in crate::files(&project.home().join(folder)) {
                std::fs::remove_file(&victim).unwrap();
                make(&victim);
            }
            let ended = project.run_within(LIMIT, &["exec", "p.yaml", "--json"]);
            assert_eq!(ended.code, 0, "{kind} {folder}: {}", ended.text());
            assert_eq!(ended.digests(), reference.digests());
            // The first finds what no stage needed, such as logs.
            let verified = project.run_within(LIMIT, &["cache", "verify"]);
            assert!(matches!(verified.code, 0 | 3), "{}", verified.text());
            assert_eq!(project.run_within(LIMIT, &["cache", "verify"]).code, 0);
        }
    }
}

#[test]
fn events_that_are_no_file_are_named() {
    for (_, make) in OBSTACLES {
        let project = Project::new(two());
        project.exec(&[]);
        let latest = std::fs::read_dir(project.home().join("runs")).unwrap().next().unwrap();
        let run = latest.unwrap();
        let id = run.file_name().into_string().unwrap();
        let events = run.path().join("events.jsonl");
        std::fs::remove_file(&events).unwrap();
        make(&events);
        for command in [&["show", id.as_str()][..], &["watch", &id, "--once"], &["report", &id]] {
            let ended = project.run_within(LIMIT, command);
            assert!(matches!(ended.code, 2 | 3), "{command:?}: {}", ended.text());
        }
        assert_eq!(project.run_within(LIMIT, &["runs"]).code, 0);
        assert_eq!(project.run_within(LIMIT, &["exec", "p.yaml", "-q"]).code, 0);
    }
}

#[test]
fn a_fifo_is_no_source() {
    let project = Project::new(pipeline("p").uses("prices", "ingest/bars").with("path", "PATH"));
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    std::fs::create_dir(project.path("data")).unwrap();
    fifo(&project.path("data/x.csv"));
    for path in ["data/x.csv", "data"] {
        project.write("p.yaml", text.replace("PATH", path));
        for command in ["plan", "exec"] {
            let ended = project.run_within(LIMIT, &[command, "p.yaml"]);
            assert!(matches!(ended.code, 1 | 2), "{}", ended.text());
            assert!(
                ended.text().contains("not a regular file") || ended.text().contains("no regular file"),
                "{}",
                ended.text()
            );
        }
    }
}

#[test]
fn a_pipeline_is_a_file_or_a_stream() {
    let project = Project::new(two());
    fifo(&project.path("fifo.yaml"));
    fifo(&project.path("plan.json"));
    for args in [
        &["plan", "fifo.yaml"][..],
        &["exec", "fifo.yaml"],
        &["graph", "fifo.yaml"],
        &["exec", "--plan", "plan.json"],
    ] {
        let ended = project.run_within(LIMIT, args);
        let text = ended.text();
        assert_eq!(ended.code, 2, "{args:?}: {text}");
        assert!(
            text.contains("a FIFO, not a regular file") && text.contains("hint"),
            "{args:?}: {text}"
        );
    }
    let saved = project.run_within(LIMIT, &["plan", "p.yaml", "--save", "plan.json"]);
    assert_eq!(saved.code, 3, "{}", saved.text());
    assert!(saved.text().contains("a FIFO, not a regular file"), "{}", saved.text());
    // A shell's `<(…)` is a stream that this process was given.
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        project
            .at_home(&mut command)
            .args(["-c", script])
            .env("RUNNER", runner());
        within(LIMIT, &mut command)
    };
    for script in [
        "\"$RUNNER\" exec <(cat p.yaml) --json",
        "cat p.yaml | \"$RUNNER\" exec /dev/stdin --json",
        "\"$RUNNER\" plan p.yaml --save /dev/stdout",
    ] {
        let ended = shell(script);
        assert_eq!(ended.code, 0, "{script}: {}", ended.text());
    }
    // Whoever waits for its end hears a signal.
    let ended = shell("timeout -s INT 1 \"$RUNNER\" exec <(exec sleep 30 2> /dev/null); echo ended $?");
    assert!(ended.stdout.contains("ended 124"), "{}", ended.text());
}

#[test]
fn a_report_replaces_what_is_no_file() {
    for (kind, make) in [OBSTACLES[0], OBSTACLES[1]] {
        let project = Project::new(two());
        project.exec(&[]);
        let latest = std::fs::read_dir(project.home().join("runs")).unwrap().next().unwrap();
        let page = latest.unwrap().path().join("report.html");
        std::fs::remove_file(&page).ok();
        make(&page);
        let ended = project.run_within(LIMIT, &["report", "latest"]);
        assert_eq!(ended.code, 0, "{kind}: {}", ended.text());
        assert!(std::fs::symlink_metadata(&page).unwrap().is_file(), "{kind}");
    }
}

/// Runs a command whose standard output cannot be written.
fn to_a_full_disk(project: &Project, args: &[&str]) -> Ended {
    let mut command = project.command(args);
    let child = command
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap().wait_with_output().unwrap().into()
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let project = Project::new(two());
    project.exec(&[]);
    let commands: [&[&str]; 18] = [
        &["exec", "p.yaml", "--json"],
        &["exec", "p.yaml"],
        &["exec", "p.yaml", "--dry-run"],
        &["plan", "p.yaml"],
        &["plan", "p.yaml", "--json"],
        &["plan", "p.yaml", "--resolved"],
        &["why", "p.yaml", "b"],
        &["graph", "p.yaml"],
        &["stages"],
        &["schema"],
        &["runs"],
        &["compare", "latest"],
        &["show", "latest"],
        &["watch", "latest", "--once"],
        &["cache", "status"],
        &["doctor"],
        &["completions", "bash"],
        &["--help"],
    ];
    for args in commands {
        let ended = to_a_full_disk(&project, args);
        assert_eq!(ended.code, 3, "{args:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("cannot write to standard output"),
            "{args:?}: {}",
            ended.stderr
        );
    }
    // The run's own failure comes first.
    project.write(
        "p.yaml",
        "version: 1\nname: f\nstages: { a: { run: 'exit 1', outputs: { x: x } } }\n",
    );
    assert_eq!(to_a_full_disk(&project, &["exec", "p.yaml", "--json"]).code, 1);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let project = Project::new(two());
    project.exec(&[]);
    let slow =
        "version: 1\nname: s\nstages: { a: { run: 'sleep 1; echo > ${outputs.x}', outputs: { x: x } } }\n";
    project.write("slow.yaml", slow);
    for args in [
        &["exec", "slow.yaml", "--json"][..],
        &["exec", "p.yaml"],
        &["plan", "p.yaml"],
        &["runs"],
        &["--help"],
    ] {
        let mut child = project
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("error"), "{args:?}: {}", ended.stderr);
    }
    // The run goes on without the one who watched it.
    let endless = "version: 1\nname: e\nstages: { a: { run: 'sleep 100', outputs: { x: x } } }\n";
    project.write("endless.yaml", endless);
    let mut run = project
        .command(&["exec", "endless.yaml", "-q", "--name", "endless"])
        .spawn()
        .unwrap();
    wait_for("the run", || {
        project
            .run(&["watch", "endless", "--once"])
            .stdout
            .contains("1 running")
    });
    let mut watch = project
        .command(&["watch", "endless", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(watch.stdout.take());
    wait_for("the end of `watch`", || watch.try_wait().unwrap().is_some());
    Command::new("kill").arg(run.id().to_string()).status().unwrap();
    run.wait().unwrap();
}

#[test]
fn under_nohup_a_hangup_changes_nothing() {
    let project = Project::new(
        "version: 1\nname: p\nstages: { a: { run: 'sleep 1; echo > ${outputs.x}', outputs: { x: x } } }\n",
    );
    let mut shell = Command::new("sh");
    project.at_home(&mut shell);
    let script = format!("trap '' HUP; exec {} exec p.yaml --json", runner().display());
    let child = shell
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    Command::new("kill")
        .args(["-s", "HUP", &child.id().to_string()])
        .status()
        .unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.text());
}

#[test]
fn names_and_values_of_any_length() {
    let long = "x".repeat(66_000);
    let project = Project::new(
        pipeline("long")
            .param("p", &long)
            .run("a", "echo ${matrix.n} > ${outputs.x}; echo ${matrix.n}")
            .matrix("n", format!("[{long}]")),
    );
    for args in [
        &["plan", "p.yaml"][..],
        &["graph", "p.yaml"],
        &["exec", "p.yaml", "-v"],
        &["exec", "p.yaml", "--set", "params.p=y", "--force", "a"],
        &["plan", "p.yaml", "--set", "params.p=z"],
        &["why", "p.yaml", "a"],
        &["runs"],
        &["show", "latest"],
        &["watch", "latest", "--once"],
        &["compare", "latest"],
        &["report", "latest"],
    ] {
        let ended = project.run_within(LIMIT, args);
        assert!(
            matches!(ended.code, 0..=3),
            "{args:?}: {}: {:.500}",
            ended.code,
            ended.stderr
        );
        assert!(!ended.stderr.contains("panicked"), "{args:?}: {:.500}", ended.stderr);
    }
}

#[test]
fn a_cell_of_66_000_characters_is_data() {
    let project = Project::new(
        "version: 1\nname: p\nstages: { prices: { uses: ingest/bars, with: { path: x.csv } } }\n",
    );
    let long = "y".repeat(66_000);
    for text in [
        format!("date,open,high,low,close,volume\n{long},1,1,1,1,1\n"),
        format!("date,open,high,low,close,{long}\n2020-01-02,1,1,1,1,1\n"),
        format!("{long}\n"),
        format!("date,symbol,open,high,low,close,volume\n2020-01-02,{long},1,1,1,1,1\n"),
    ] {
        project.write("x.csv", &text);
        for command in ["plan", "exec", "plan"] {
            let ended = project.run_within(LIMIT, &[command, "p.yaml"]);
            assert!(matches!(ended.code, 0..=2), "{command}: {:.1000}", ended.text());
            assert!(!ended.stderr.contains("panicked"), "{command}: {:.1000}", ended.stderr);
        }
    }
}

#[test]
fn a_stage_much_dearer_than_usual_is_warned_of() {
    let project = Project::new(
        pipeline("p")
            .uses("market", "ingest/simulated_market")
            .with("days", 2)
            .with("seed", 7)
            .uses("iv", "greeks/implied_volatility")
            .needs("chain", "market.chain")
            .needs("rates", "market.rates")
            .with("style", "american")
            .set("timeout", "1s"),
    );
    let warns = |ended: &Ended| ended.stderr.contains("72 times") && ended.stderr.contains("forward: rates");
    let plan = project.run(&["plan", "p.yaml"]);
    assert!(plan.code == 0 && warns(&plan), "{}", plan.text());
    let cheap = project.run(&["plan", "p.yaml", "--set", "iv.with.forward=rates"]);
    assert!(cheap.code == 0 && !cheap.stderr.contains("times"), "{}", cheap.text());
    let ended = within(LIMIT, &mut project.command(&["exec", "p.yaml"]));
    assert!(warns(&ended), "{}", ended.text());
}
