//! Big logs, big outputs, and the limits of control groups.

use crate::{Mode, exec};
use runner_testkit::{Project, wait_for};
use std::process::{Command, Stdio};

/// The number after a prefix in a text.
fn number(text: &str, prefix: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(prefix));
    line.unwrap().trim().parse().unwrap()
}

pub(crate) fn a_big_log_is_bounded(mode: Mode) {
    let project = Project::new(
        "\
version: 1
name: log
stages:
  a: \
{ run: 'echo first; head -c 1500000000 /dev/zero; echo; echo last; echo 1 > ${outputs.x}', outputs: { x: x.txt } }
",
    );
    let mut command = project.command(&["exec", "p.yaml", "-v", "--isolation", mode.argument()]);
    let ended: runner_testkit::Ended = command
        .env(crate::NAMESPACES, mode.namespaces())
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let memory = number(&ended.stderr, "peak memory of the engine in bytes: ");
    // The engine maps the blobs that it stores and the program itself is large.
    assert!(memory < 200 << 20, "{memory}");
    let size: u64 = runner_testkit::files(&project.home())
        .iter()
        .map(|path| std::fs::metadata(path).map_or(0, |meta| meta.len()))
        .sum();
    assert!((64 << 20..80 << 20).contains(&size), "{size}");
    let shown = project.run(&["show", "latest/a"]).stdout;
    assert!(shown.contains("last"), "the tail is kept");
}

/// Storing outputs ends at `timeout:` and on the first signal.
pub(crate) fn outputs_hear_their_limits() {
    let text = |limit: &str| {
        format!(
            "\
version: 1
name: outputs
stages:
  a:
    run: mkdir ${{outputs.x}}; truncate -s 200G ${{outputs.x}}/big; mkfifo ${{outputs.x}}/fifo
    {limit}
    outputs: {{ x: x }}
"
        )
    };
    let project = Project::new(text("timeout: 2s"));
    let ended = exec(&project, Mode::None, &[]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    assert!(ended.error("a").contains("time limit"), "{}", ended.error("a"));
    let project = Project::new(text(""));
    let child = project
        .command(&["exec", "p.yaml", "-q", "--isolation", "none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let work = project.home().join("tmp");
    wait_for("the output to be stored", || {
        let written = runner_testkit::files(&work);
        written.iter().any(|path| {
            !path.starts_with(work.join("run-"))
                && std::fs::metadata(path).is_ok_and(|meta| meta.len() > 32 << 20 && meta.len() < 100 << 30)
        })
    });
    let status = Command::new("kill")
        .args(["-s", "TERM", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

/// A program that exceeds the limit of its memory ends with its family, and nothing of it is stored, even if
/// its shell would not mind.
pub(crate) fn memory_is_limited(mode: Mode) {
    let text = |limit: &str| {
        format!(
            "\
version: 1
name: memory
stages:
  a:
    run: |
      perl -e '$x = \"x\" x (300 << 20); print length $x' > ${{outputs.x}} || echo 0 > ${{outputs.x}}
    resources: {{ memory: {limit} }}
    tools: [perl]
    outputs: {{ x: x.txt }}
"
        )
    };
    let project = Project::new(text("100MiB"));
    let ended = exec(&project, mode, &[]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    assert!(
        ended
            .error("a")
            .contains("was killed for memory: its limit is 100.0 MiB"),
        "{}",
        ended.error("a")
    );
    let project = Project::new(text("2GiB"));
    let ended = exec(&project, mode, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert_eq!(project.output("a.x"), (300_u64 << 20).to_string());
    let events = ended.events();
    let isolation = events.iter().find(|event| event["event"] == "isolation").unwrap();
    assert_eq!(isolation["memory"], 2_u64 << 30);
    assert_eq!(crate::programs::info(&project)["memory_limit"], 2_u64 << 30);
}

/// Where limits cannot be enforced, nothing claims that they are.
pub(crate) fn a_limit_that_is_not_enforced_is_not_claimed() {
    let project = Project::new(
        "\
version: 1
name: memory
stages:
  a: { run: 'echo 1 > ${outputs.x}', resources: { memory: 2GiB }, outputs: { x: x.txt } }
",
    );
    let ended = exec(&project, Mode::None, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    let events = ended.events();
    let isolation = events.iter().find(|event| event["event"] == "isolation").unwrap();
    assert!(isolation.get("memory").is_none(), "{isolation}");
    assert!(crate::programs::info(&project)["memory_limit"].is_null());
}
