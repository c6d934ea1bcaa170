//! The example of a stage kind of another crate. This test has its text, and is that program where it is
//! started with arguments of one.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../examples/own_stage_kind.rs"]
mod own_stage_kind;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::{Ended, Project};
use stages_core::{Context, Outputs, Ports, StageError, StageKind, erase};
use std::process::{Command, ExitCode};

const PIPELINE: &str = "\
version: 1
name: own
stages:
  market: { uses: ingest/bars, with: { path: bars.csv } }
  drawdown: { uses: acme/drawdown, needs: { bars: market }, with: { window: 2 } }
";

const BARS: &str = "\
symbol,date,close
A,2019-12-30,10
A,2019-12-31,8
A,2020-01-02,6
B,2019-12-30,5
B,2019-12-31,7
B,2020-01-02,7
";

/// The variable that makes this test the program of the example.
const IS_PROGRAM: &str = "RUNNER_TEST_OWN_KIND";

/// The value of the variable with which the program has [`Taken`] in place of the example's kind.
const TAKEN: &str = "taken";

/// Runs the program of the example.
fn program(project: &Project, args: &[&str]) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    project.at_home(&mut command).args(args).env(IS_PROGRAM, "1");
    command.output().unwrap().into()
}

fn a_kind_of_another_crate_runs_in_a_pipeline() {
    let project = Project::new(PIPELINE);
    project.write("bars.csv", BARS);
    let exec = ["exec", "p.yaml", "--json", "drawdown"];
    let first = program(&project, &exec);
    assert_eq!(first.code, 0, "{}", first.text());
    assert_eq!(first.stages("ran"), ["market", "drawdown"]);
    assert_eq!(program(&project, &exec).stages("ran"), Vec::<String>::new());
    let show = program(&project, &["show", "latest/drawdown.features"]);
    // 8 / 10 - 1 of A in the year that is shown.
    for value in ["-0.200000", "\"rows\": 6"] {
        assert!(show.stdout.contains(value), "{}", show.text());
    }
}

fn mistakes_are_found_before_anything_runs() {
    let project = Project::new(PIPELINE.replace("window: 2", "windw: 2"));
    project.write("bars.csv", BARS);
    let wrong = program(&project, &["plan", "p.yaml"]);
    assert_eq!(wrong.code, 2, "{}", wrong.text());
    assert!(wrong.stderr.contains("did you mean `window`?"), "{}", wrong.stderr);
    project.write("p.yaml", PIPELINE.replace("window: 2", "window: 0"));
    let wrong = program(&project, &["plan", "p.yaml"]);
    assert!(wrong.stderr.contains("give 1 or more"), "{}", wrong.stderr);
    let shown = program(&project, &["stages", "acme/drawdown"]).stdout;
    assert!(shown.contains("window: integer  [252]"), "{shown}");
    assert!(program(&project, &["schema"]).stdout.contains("acme/drawdown"));
}

/// A kind whose prefix is a family of the program.
struct Taken;

impl StageKind for Taken {
    type Config = own_stage_kind::DrawdownConfig;
    const NAME: &'static str = "env/taken";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[],
    };

    fn run(&self, _: &Self::Config, _: &Context) -> Result<Outputs, StageError> {
        Ok(Outputs::new())
    }
}

fn a_prefix_of_the_program_is_refused() {
    let project = Project::new(PIPELINE);
    let mut command = Command::new(std::env::current_exe().unwrap());
    project.at_home(&mut command).arg("stages").env(IS_PROGRAM, TAKEN);
    let ended: Ended = command.output().unwrap().into();
    assert_eq!(ended.code, 2, "{}", ended.text());
    let message = "the stage kind `env/taken` has the prefix `env`, which belongs to this program";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
}

fn main() -> ExitCode {
    match std::env::var(IS_PROGRAM).as_deref() {
        Ok(TAKEN) => return ExitCode::from(runner::main_with(vec![erase(Taken)])),
        Ok(_) => return own_stage_kind::main(),
        Err(_) => {}
    }
    requirements::run(vec![
        trial(
            "a_kind_of_another_crate_runs_in_a_pipeline",
            None,
            a_kind_of_another_crate_runs_in_a_pipeline,
        ),
        trial(
            "a_prefix_of_the_program_is_refused",
            None,
            a_prefix_of_the_program_is_refused,
        ),
        trial(
            "mistakes_are_found_before_anything_runs",
            None,
            mistakes_are_found_before_anything_runs,
        ),
    ])
}
