//! The files of `runner export RUN DIR` under a real DVC (from PyPI: `RUNNER_TEST_DVC` names its program).

use crate::watch::learn;
use runner_testkit::Project;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A git repository that DVC and git read, both without the settings of whoever runs the test.
struct Repository {
    dir: PathBuf,
    home: PathBuf,
    dvc: OsString,
}

impl Repository {
    /// The standard output of a program, which must succeed.
    fn run(&self, program: impl Into<OsString>, args: &[&str]) -> String {
        let program = program.into();
        let done = Command::new(&program)
            .args(args)
            .current_dir(&self.dir)
            .env("HOME", &self.home)
            .env("DVC_NO_ANALYTICS", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("RUNNER_HOME")
            .output()
            .unwrap();
        let (text, errors) = (
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr),
        );
        assert!(done.status.success(), "{} {args:?}: {text}{errors}", program.display());
        text.into_owned()
    }

    fn git(&self, args: &[&str]) {
        let all = [&["-c", "user.name=a", "-c", "user.email=a@example.org"], args].concat();
        self.run("git", &all);
    }

    fn dvc(&self, args: &[&str]) -> Value {
        let text = self.run(self.dvc.clone(), args);
        serde_json::from_str(&text).unwrap_or_else(|err| panic!("{args:?}: {err}\n{text}"))
    }
}

#[test]
fn dvc_reads_the_metrics_and_curves_of_a_run() {
    let Some(dvc) = std::env::var_os("RUNNER_TEST_DVC") else {
        eprintln!("skipped: RUNNER_TEST_DVC is not set");
        return;
    };
    let project = Project::new(learn());
    let repository = Repository {
        dir: project.path("results"),
        home: project.path("nobody"),
        dvc,
    };
    std::fs::create_dir_all(&repository.home).unwrap();
    let export = || {
        let exported = project.run(&["export", "latest", "results"]);
        assert_eq!(exported.code, 0, "{}", exported.text());
        let text = std::fs::read_to_string(project.path("results/metrics.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(project.exec(&[]).code, 0);
    let first = export();
    project.write(
        "results/dvc.yaml",
        "metrics: [metrics.json]\nplots: [{ plots: { x: step } }]\n",
    );
    repository.git(&["init", "-q"]);
    repository.run(repository.dvc.clone(), &["init", "-q"]);
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-q", "-m", "first"]);

    // The values are those of the file.
    let shown = repository.dvc(&["metrics", "show", "--json"]);
    assert_eq!(shown[""]["data"]["metrics.json"]["data"], first, "{shown}");

    // Another run differs by what it learned.
    assert_eq!(project.exec(&["--set", "gamma=0.9"]).code, 0);
    let second = export();
    let differences = repository.dvc(&["metrics", "diff", "--json", "HEAD"]);
    let of_loss = "losses/value_loss";
    let difference = &differences["metrics.json"][format!("train.{of_loss}")];
    assert_eq!(difference["old"], first["train"][of_loss], "{differences}");
    assert_eq!(difference["new"], second["train"][of_loss], "{differences}");

    // A curve has the points of both, by step.
    let plots = repository.dvc(&["plots", "diff", "--json", "HEAD"]);
    let curve = &plots["data"]["plots/train/losses/value_loss.tsv"][0]["content"];
    assert_eq!(curve["encoding"]["x"]["field"], "step", "{plots}");
    for (revision, last) in [("HEAD", &first), ("workspace", &second)] {
        let points = curve["data"]["values"].as_array().into_iter().flatten();
        let points: Vec<&Value> = points.filter(|point| point["rev"] == revision).collect();
        let steps: Vec<_> = points.iter().filter_map(|point| point["step"].as_str()).collect();
        assert_eq!(steps, ["128", "256", "384", "512"], "{revision}: {curve}");
        let value = points[3]["value_loss"].as_str().and_then(|value| value.parse().ok());
        assert_eq!(last["train"][of_loss].as_f64(), value, "{revision}");
    }
}
