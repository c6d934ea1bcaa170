//! Timers, held against the services themselves: `systemd-analyze`, and `crontab` with a spool of its own.
//! Where they are missing, the tests say so.

use crate::{Ended, Project, runner};
use runner_testkit::pipeline;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

fn nightly(schedule: &str) -> Project {
    let text = pipeline("nightly")
        .block("schedule", schedule)
        .uses("m", "ingest/simulated_market")
        .with("days", 5);
    Project::new(&text)
}

fn is_there(program: &str, args: &[&str]) -> bool {
    let found = Command::new(program)
        .args(args)
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: `{program}` cannot be run here");
    }
    found
}

/// As launchd does, refuses to load an agent that is loaded, and to unload one that is not. It unloads an
/// agent later than it says: the first attempt to load another one fails.
const LAUNCHCTL: &str = "#!/bin/sh
echo \"$@\" >> \"$CALLS\"
case $1 in
  bootstrap)
    rmdir \"$CALLS.ending\" 2> /dev/null && exit 5
    [ -e \"$3\" ] && mkdir \"$CALLS.loaded\" 2> /dev/null || exit 5 ;;
  bootout) mv \"$CALLS.loaded\" \"$CALLS.ending\" 2> /dev/null || exit 3 ;;
  print) [ -d \"$CALLS.loaded\" ] || exit 113 ;;
esac
";

/// Runs the program with a home of its own for units, and services that note how they are called.
fn with_units(project: &Project, args: &[&str]) -> Ended {
    let note = "#!/bin/sh\necho \"$@\" >> \"$CALLS\"\n";
    for (name, text) in [("bin/systemctl", note), ("bin/launchctl", LAUNCHCTL)] {
        project.write(name, text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.path(name), mode).unwrap();
    }
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    let output = project
        .command(args)
        .env("XDG_CONFIG_HOME", project.path("config"))
        .env("HOME", project.path("user"))
        .env("CALLS", project.path("calls"))
        .env("PATH", path)
        .output();
    output.unwrap().into()
}

const DAILY: &str = "{ at: \"18:30\", timezone: America/New_York, calendar: XNYS }";

#[test]
fn units_are_shown_written_and_removed() {
    let project = nightly(DAILY);
    let units = project.path("config/systemd/user");
    let shown = with_units(&project, &["schedule", "install", "p.yaml", "--with", "systemd"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(!units.exists() && !project.path("calls").exists());
    assert_eq!(
        shown.stderr,
        "nothing was changed; `--yes` applies this without asking\n"
    );
    let here = project.path("").display().to_string();
    let clear = |text: &str| {
        let text = text.replace(&runner().display().to_string(), "RUNNER");
        let text = text.replace(here.trim_end_matches('/'), "HERE");
        text.replace(&std::env::var("PATH").unwrap(), "PATH")
    };
    insta::assert_snapshot!(clear(&shown.stdout), @r#"
    write HERE/config/systemd/user/runner-nightly.service:
        # Written by `runner schedule install`; `runner schedule uninstall` removes it.
        [Unit]
        Description=Nights of the pipeline nightly

        [Service]
        Type=oneshot
        WorkingDirectory=HERE
        Environment="PATH=HERE/bin:PATH"
        Environment="RUNNER_HOME=HERE/home"
        ExecStart="RUNNER" schedule run-due "HERE/p.yaml"

    write HERE/config/systemd/user/runner-nightly.timer:
        # Written by `runner schedule install`; `runner schedule uninstall` removes it.
        [Unit]
        Description=Nights of the pipeline nightly

        [Timer]
        OnCalendar=*-*-* 18:30:00 America/New_York
        Persistent=true
        AccuracySec=1s

        [Install]
        WantedBy=timers.target

    run systemctl --user daemon-reload

    run systemctl --user enable --now runner-nightly.timer
    "#);
    let installed = with_units(
        &project,
        &["schedule", "install", "p.yaml", "--with", "systemd", "--yes"],
    );
    assert_eq!(
        (installed.code, &installed.stdout),
        (0, &shown.stdout),
        "{}",
        installed.stderr
    );
    let calls = std::fs::read_to_string(project.path("calls")).unwrap();
    assert_eq!(
        calls,
        "--user daemon-reload\n--user enable --now runner-nightly.timer\n"
    );
    if is_there("systemd-analyze", &["--version"]) {
        verify(&units);
    }
    let list = with_units(&project, &["schedule", "list", "p.yaml", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    assert!(
        list[0]["timers"].as_array().unwrap().contains(&"systemd".into()),
        "{list}"
    );
    let removed = with_units(
        &project,
        &["schedule", "uninstall", "p.yaml", "--with", "systemd", "--yes"],
    );
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(std::fs::read_dir(&units).unwrap().count(), 0);
    let calls = std::fs::read_to_string(project.path("calls")).unwrap();
    assert!(
        calls.ends_with("--user disable --now runner-nightly.timer\n--user daemon-reload\n"),
        "{calls}"
    );
    let nothing = with_units(
        &project,
        &["schedule", "uninstall", "p.yaml", "--with", "systemd", "--yes"],
    );
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, "nothing is installed\n"));
}

#[test]
fn an_agent_is_loaded_once_and_unloaded() {
    let project = nightly(DAILY);
    let run =
        |command: &str| with_units(&project, &["schedule", command, "p.yaml", "--with", "launchd", "--yes"]);
    let plist = project.path("user/Library/LaunchAgents/runner.schedule.nightly.plist");
    let install = || {
        let installed = run("install");
        assert_eq!(installed.code, 0, "{}", installed.stderr);
        let text = std::fs::read_to_string(&plist).unwrap();
        assert!(text.contains("user/Library/Logs/runner.schedule.nightly.log"), "{text}");
        assert!(project.path("calls.loaded").exists());
        installed.stdout
    };
    install();
    assert_eq!(install(), "all timers are installed already\n");
    // An agent of an earlier version is replaced, whose end takes its time.
    project.write("user/Library/LaunchAgents/runner.schedule.nightly.plist", "former");
    install();
    let removed = run("uninstall");
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert!(!plist.exists() && !project.path("calls.loaded").exists());
    let calls = std::fs::read_to_string(project.path("calls")).unwrap();
    let user = rustix::process::getuid().as_raw();
    let unload = format!("bootout gui/{user}/runner.schedule.nightly\n");
    let load = format!("bootstrap gui/{user} {}\n", plist.display());
    let is_loaded = unload.replace("bootout", "print");
    let first = [&*unload, &load].concat();
    let other = [&*unload, &load, &load].concat();
    assert_eq!(calls, [&*first, &is_loaded, &other, &unload].concat());
}

/// The findings of systemd about the units.
fn verify(units: &Path) {
    let runtime = tempfile::tempdir().unwrap();
    for unit in ["runner-nightly.timer", "runner-nightly.service"] {
        let output = Command::new("systemd-analyze")
            .args(["verify", "--user"])
            .arg(units.join(unit))
            .env("XDG_RUNTIME_DIR", runtime.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours: Vec<&str> = said.lines().filter(|line| line.contains("runner-nightly")).collect();
        assert!(output.status.success() && ours.is_empty(), "{unit}: {said}");
    }
}

/// A directory whose name has characters with a meaning in units.
#[test]
fn strange_paths_are_escaped() {
    if !is_there("systemd-analyze", &["--version"]) {
        return;
    }
    let project = nightly(DAILY);
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("a 100% $HOME \"b\"/p.yaml", &text);
    let file = "a 100% $HOME \"b\"/p.yaml";
    let installed = with_units(&project, &["schedule", "install", file, "--with", "systemd", "--yes"]);
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    verify(&project.path("config/systemd/user"));
}

/// The next times by systemd are those by us, but for days without a night, on which `run-due` does nothing.
#[test]
fn systemd_and_we_mean_the_same_times() {
    let has_base = is_there(
        "systemd-analyze",
        &["calendar", "--base-time=2026-03-01 00:00:00 UTC", "daily"],
    );
    if !has_base {
        return;
    }
    for (schedule, from) in [
        (DAILY, "2026-03-05T00:00:00Z"),
        (DAILY, "2026-10-30T00:00:00Z"),
        ("{ at: close + 2h30m, calendar: XNYS }", "2026-11-24T00:00:00Z"),
        (
            "{ cron: \"*/20 8-10/2 * * 1-5\", timezone: Europe/Berlin }",
            "2026-03-27T00:00:00Z",
        ),
        (
            "{ cron: \"15 6 1 * *\", timezone: Asia/Kolkata }",
            "2026-02-27T00:00:00Z",
        ),
    ] {
        let project = nightly(schedule);
        let shown = with_units(&project, &["schedule", "install", "p.yaml", "--with", "systemd"]);
        let times: Vec<String> = shown
            .stdout
            .lines()
            .filter_map(|line| Some(line.trim().strip_prefix("OnCalendar=")?.to_owned()))
            .collect();
        let base = from.replace('T', " ").replace('Z', " UTC");
        let mut theirs = String::new();
        for time in &times {
            let output = Command::new("systemd-analyze")
                .args(["calendar", "--iterations=400", &format!("--base-time={base}"), time])
                .env("TZ", "UTC")
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{time}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            theirs.push_str(&String::from_utf8_lossy(&output.stdout));
        }
        let next = project.run(&["schedule", "next", "p.yaml", "--count", "6", "--now", from, "--json"]);
        let next: serde_json::Value = serde_json::from_str(&next.stdout).unwrap();
        for due in next.as_array().unwrap() {
            let due = due["due"].as_str().unwrap()[..19].replace('T', " ");
            assert!(
                theirs.contains(&format!("{due} UTC")),
                "{schedule}: {due}\n{times:?}\n{theirs}"
            );
        }
    }
}

/// Runs a script with an empty spool of crontabs.
fn with_spool(project: &Project, script: &str) -> Ended {
    let spool = "mount -t tmpfs -o mode=1730,gid=$(stat -c %g /var/spool/cron/crontabs) none \
        /var/spool/cron/crontabs || exit 99\n";
    let mut command = Command::new("unshare");
    project
        .at_home(&mut command)
        .args(["-m", "sh", "-ec", &format!("{spool}{script}")])
        .env("RUNNER", runner())
        .env("HOME", project.path("user"));
    command.output().unwrap().into()
}

#[test]
fn a_line_of_the_crontab_is_installed_works_and_is_removed() {
    let has_cron = is_there(
        "sh",
        &[
            "-c",
            "command -v crontab && command -v unshare && test -d /var/spool/cron/crontabs",
        ],
    );
    if !has_cron || !is_there("unshare", &["-m", "true"]) {
        return;
    }
    let project = nightly("{ at: \"00:00\", catch_up: latest }");
    let script = "
echo '0 5 * * * true # own line' | crontab -
\"$RUNNER\" schedule install p.yaml --with cron > shown
crontab -l > unchanged
\"$RUNNER\" schedule install p.yaml --with cron --yes > /dev/null
\"$RUNNER\" schedule install p.yaml --with cron --yes > /dev/null
crontab -l > installed
\"$RUNNER\" schedule list p.yaml --json > list
\"$RUNNER\" schedule uninstall p.yaml --yes > removed
crontab -l > after
";
    let ended = with_spool(&project, script);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let read = |name: &str| std::fs::read_to_string(project.path(name)).unwrap();
    let own = "0 5 * * * true # own line\n";
    assert_eq!((read("unchanged").as_str(), read("after").as_str()), (own, own));
    let installed = read("installed");
    let line = installed.strip_prefix(own).unwrap();
    assert_eq!(line.lines().count(), 1, "{installed}");
    assert!(read("shown").contains(line.trim()) && read("removed").contains(line.trim()));
    let list: serde_json::Value = serde_json::from_str(&read("list")).unwrap();
    assert_eq!(list[0]["timers"], serde_json::json!(["cron"]));
    // As cron runs it: by `sh`, in the home directory, with little of an environment.
    let command = line.trim().strip_prefix("*/5 * * * * ").unwrap().replace("\\%", "%");
    let output = Command::new("/bin/sh")
        .args(["-c", &command])
        .env_clear()
        .env("HOME", "/")
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .output()
        .unwrap();
    let ended = Ended::from(output);
    assert_eq!((ended.code, ended.text().as_str()), (0, ""));
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]);
    let log: serde_json::Value = serde_json::from_str(&log.stdout).unwrap();
    assert_eq!(log[0]["status"], "done", "{log}");
}

/// Runs a script with an instance of systemd of its own, as a user has one: in namespaces of processes and
/// mounts.
fn with_systemd(project: &Project, script: &str) -> Ended {
    let start = "\
        mount -t tmpfs none /run; mkdir -p /run/systemd/system; mkdir -m 700 -p \"$XDG_RUNTIME_DIR\"\n\
        /lib/systemd/systemd --user --unit=basic.target > /dev/null 2>&1 &\n\
        for i in $(seq 100); do systemctl --user is-system-running > /dev/null 2>&1 && break; sleep 0.1; \
        done\n\
        systemctl --user is-system-running > /dev/null || exit 99\n";
    let mut command = Command::new("unshare");
    project
        .at_home(&mut command)
        .args([
            "-m",
            "-p",
            "-f",
            "--mount-proc",
            "sh",
            "-ec",
            &format!("{start}{script}"),
        ])
        .env("RUNNER", runner())
        .env("HOME", project.path("user"))
        .env("XDG_RUNTIME_DIR", project.path("run"))
        .env("XDG_CONFIG_HOME", project.path("config"))
        .env("XDG_DATA_HOME", project.path("data"));
    command.output().unwrap().into()
}

#[test]
fn systemd_makes_up_for_a_night() {
    let project = nightly("{ at: \"18:30\", timezone: UTC, calendar: every_day, catch_up: latest }");
    if !is_there("unshare", &["-m", "-p", "-f", "--mount-proc", "true"])
        || with_systemd(&project, "true").code != 0
    {
        eprintln!("skipped: systemd cannot be run in namespaces here");
        return;
    }
    // The machine was off when the timer was due last.
    let ran = with_systemd(
        &project,
        "mkdir -p \"$XDG_DATA_HOME/systemd/timers\"\n\
         touch -d '2 days ago' \"$XDG_DATA_HOME/systemd/timers/stamp-runner-nightly.timer\"\n\
         \"$RUNNER\" schedule install p.yaml --with systemd --yes > /dev/null\n\
         for i in $(seq 300); do \"$RUNNER\" schedule log p.yaml --json | grep -q '\"done\"' && break; \
         sleep 0.1; done\n\
         sleep 0.5\n\
         systemctl --user show runner-nightly.service -p Result\n\
         systemctl --user show runner-nightly.timer -p ActiveState\n\
         \"$RUNNER\" schedule uninstall p.yaml --with systemd --yes > /dev/null\n\
         systemctl --user show runner-nightly.timer -p ActiveState -p LoadState\n\
         \"$RUNNER\" schedule log p.yaml --json | grep -c '\"done\"'\n",
    );
    assert_eq!(ran.code, 0, "{}", ran.text());
    insta::assert_snapshot!(ran.stdout, @r"
    Result=success
    ActiveState=active
    LoadState=not-found
    ActiveState=inactive
    1
    ");
}
