//! Following a run that goes on: `runner watch`, and the metrics in its directory.

use crate::{Project, files};
use runner_testkit::{PipelineText, pipeline};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn watched(project: &Project) -> Value {
    let ended = project.run(&["watch", "--once", "--json"]);
    serde_json::from_str(&ended.stdout).unwrap_or_default()
}

#[test]
fn a_run_is_watched_to_its_end() {
    let project = Project::new(
        pipeline("slow")
            .param("gate", "none")
            .run("quick", "echo 1 > ${outputs.x}")
            .run(
                "slow",
                "i=0; while ! test -e \"$GATE\"; do i=$((i + 1)); done; echo 1 > ${outputs.x}",
            )
            .needs("x", "quick")
            .set("env", "{ GATE: \"${params.gate}\" }"),
    );
    let gate = project.path("gate");
    let set = format!("gate={}", gate.display());
    let mut run = project
        // It waits for a file of the host.
        .command(&["exec", "p.yaml", "-q", "--isolation", "none", "--set", &set])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    let is_measured = |watched: &Value| {
        watched["running"]["slow"]["cores"]
            .as_f64()
            .is_some_and(|cores| cores > 0.0)
    };
    let mut state = watched(&project);
    while !is_measured(&state) {
        if since.elapsed() > Duration::from_secs(60) {
            let _ = run.kill();
            panic!("{state}");
        }
        std::thread::sleep(Duration::from_millis(100));
        state = watched(&project);
    }
    assert_eq!(
        (&state["status"], &state["over"]["ran"]),
        (&"running".into(), &1.into())
    );
    assert!(state["running"]["slow"]["memory"].as_u64().unwrap() > 1 << 20);
    let picture = project.run(&["watch", "--once"]).stdout;
    assert!(
        picture.contains(" running ") && picture.contains("\n  slow  ") && picture.contains("% CPU"),
        "{picture}"
    );

    // It goes on until the run ends.
    let watch = project.command(&["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    std::fs::write(&gate, "").unwrap();
    assert!(run.wait().unwrap().success());
    let shown = String::from_utf8(watch.wait_with_output().unwrap().stdout).unwrap();
    assert!(shown.lines().last().unwrap().contains(" slow done "), "{shown}");
    assert_eq!(watched(&project)["status"], "done");
}

#[test]
fn a_training_leaves_its_metrics_for_others() {
    let project = Project::new(
        pipeline("learn")
            .uses("env", "env/classic")
            .uses("train", "train/ppo")
            .needs("env", "env")
            .with("total_timesteps", 512)
            .with("n_envs", 2)
            .with("n_steps", 64)
            .with("n_epochs", 1),
    );
    assert_eq!(project.exec(&[]).code, 0);
    let run = files(&project.home().join("runs"));
    let file = |part: &str| run.iter().find(|path| path.to_str().unwrap().contains(part)).unwrap();
    let lines = std::fs::read_to_string(file("/metrics/train.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().filter(|line| line["name"] == name).count();
    assert_eq!(
        (of("losses/policy_loss"), of("charts/SPS"), of("charts/IPS")),
        (4, 4, 4)
    );
    assert_eq!(lines.last().unwrap()["step"], 512);
    let events = std::fs::read(file("/tensorboard/train/events.out.tfevents.")).unwrap();
    let has = |text: &str| events.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("_hparams_/session_start_info") && has("_hparams_/session_end_info"));
    assert!(has("with.n_steps") && has("with.learning_rate"));
    // Length, checksum, data, checksum: as many records as metrics, the header, and the session's start and
    // end.
    let (mut at, mut records) = (0, 0);
    while at < events.len() {
        at += 16 + u64::from_le_bytes(events[at..at + 8].try_into().unwrap()) as usize;
        records += 1;
    }
    assert_eq!((at, records), (events.len(), lines.len() + 3));
    // What is cached learns nothing, and leaves nothing.
    assert_eq!(project.exec(&[]).log(), "cached env\ncached train");
    assert_eq!(
        files(&project.home().join("runs"))
            .iter()
            .filter(|path| path.to_str().unwrap().contains("/metrics/"))
            .count(),
        1
    );
}

#[test]
fn a_log_is_followed_to_its_end() {
    let project = Project::new(
        "version: 1\nname: waiting\nstages:\n  a: \
        { run: 'echo begun; while [ ! -e DIR/go ]; do sleep 0.05; done; echo gone on; echo 1 > ${outputs.x}', isolation: none, outputs: { x: x.txt } }\n",
    );
    let dir = project.path(".").canonicalize().unwrap();
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("DIR", &dir.display().to_string()));
    let mut running = project.command(&["exec", "p.yaml", "-q"]).spawn().unwrap();
    crate::wait_for("the log", || {
        let log = project.run(&["logs", "latest/a"]);
        log.code == 0 && log.stdout == "begun\n"
    });
    let following = project
        .command(&["logs", "latest/a", "-f"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    project.write("go", "");
    let followed = following.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(followed.stdout).unwrap(), "begun\ngone on\n");
    running.wait().unwrap();
    assert_eq!(project.run(&["logs", "latest/a"]).stdout, "begun\ngone on\n");
    let json = project.run(&["logs", "latest/a", "--json"]).stdout;
    assert_eq!(
        json,
        "{\"line\":\"begun\",\"stage\":\"a\"}\n{\"line\":\"gone on\",\"stage\":\"a\"}\n"
    );
    let wrong = project.run(&["logs", "latest/b"]);
    assert_eq!(wrong.code, 2);
    assert!(project.run(&["logs", "latest"]).stderr.contains("RUN/STAGE"));
}

/// A training of seconds, whose metrics are exported.
pub(crate) fn learn() -> PipelineText {
    pipeline("learn")
        .param("gamma", 0.99)
        .uses("env", "env/classic")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .with("total_timesteps", 512)
        .with("n_envs", 2)
        .with("n_steps", 64)
        .with("n_epochs", 1)
        .with("gamma", "${params.gamma}")
}

#[test]
fn the_metrics_of_a_run_are_files() {
    let project = Project::new(learn());
    assert_eq!(project.exec(&[]).code, 0);
    let export = || {
        let exported = project.run(&["export", "latest", "results"]);
        assert_eq!(exported.code, 0, "{}", exported.text());
        let read = |path: &PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
        let all = files(&project.path("results"));
        let ours = all.iter().filter(|path| !path.ends_with("dvc.yaml"));
        ours.map(read).collect::<Vec<_>>()
    };
    let first = export();
    let metrics: Value =
        serde_json::from_str(&std::fs::read_to_string(project.path("results/metrics.json")).unwrap())
            .unwrap();
    let curve = std::fs::read_to_string(project.path("results/plots/train/losses/value_loss.tsv")).unwrap();
    let lines: Vec<Vec<&str>> = curve.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["step", "value_loss"]);
    assert_eq!(
        lines.iter().map(|line| line[0]).collect::<Vec<_>>(),
        ["step", "128", "256", "384", "512"]
    );
    assert_eq!(metrics["train"]["losses/value_loss"].as_f64(), lines[4][1].parse().ok());
    assert!(metrics["train"].get("seconds").is_none() && metrics["train"].get("charts/SPS").is_none());
    // Of a run with the same results they have the same bytes, though everything is cached; files of others
    // stay.
    std::fs::write(project.path("results/plots/old.tsv"), "step\told\n").unwrap();
    std::fs::write(project.path("results/dvc.yaml"), "metrics: [metrics.json]\n").unwrap();
    assert_eq!(project.exec(&[]).log(), "cached env\ncached train");
    assert_eq!(export(), first);
    assert!(project.path("results/dvc.yaml").exists());
    assert_eq!(project.exec(&["--set", "gamma=0.9"]).code, 0);
    assert_ne!(export(), first);
}
