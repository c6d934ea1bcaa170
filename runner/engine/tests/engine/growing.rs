//! Runs to which stages are added while they go on.

use crate::{Lab, Setup, pipeline};
use runner_engine::{Ended, Grow, Growth, StageStatus};
use runner_pipeline::{Node, Pipeline, Work};
use runner_testkit::PipelineText;
use std::sync::Arc;

/// `b` counts what `a` wrote.
fn two() -> PipelineText {
    pipeline("two")
        .run("a", "echo one two > ${outputs.x}")
        .run("b", "count ${needs.x} > ${outputs.x}")
        .needs("x", "a")
}

/// Adds `b`, and then copies of it that fail or do not.
struct Copies {
    /// The last word of each copy's command, by round.
    rounds: Vec<Vec<&'static str>>,
    may_fail: bool,
    seen: Vec<(String, StageStatus)>,
}

fn copy(pipeline: &Pipeline, name: &str, command: &str) -> Node {
    let mut node = pipeline.nodes[1].clone();
    node.id = name.to_owned();
    if let Work::Command(of) = &mut node.work {
        Arc::make_mut(of).command = command.to_owned();
    }
    node
}

impl Grow for Copies {
    fn grow(&mut self, pipeline: &Pipeline, ended: &[Ended]) -> Growth {
        let names = ended
            .iter()
            .map(|ended| (pipeline.nodes[ended.node].id.clone(), ended.status));
        self.seen.extend(names);
        let is_first = self.seen.is_empty();
        // Each round is added when all before it have ended.
        if !is_first && pipeline.nodes.len() - 2 > self.seen.iter().filter(|(id, _)| id.len() > 1).count() {
            return Growth::default();
        }
        let words = if self.rounds.is_empty() {
            Vec::new()
        } else {
            self.rounds.remove(0)
        };
        let node = |word: &&str| match *word {
            "fails" => copy(pipeline, "fails", "fail at once; echo 1 > ${outputs.x}"),
            word => copy(pipeline, word, &format!("echo {word} > ${{outputs.x}}")),
        };
        Growth {
            chosen: if is_first { vec![0, 1] } else { Vec::new() },
            nodes: words.iter().map(node).collect(),
            may_fail: self.may_fail,
            notes: if is_first {
                vec!["begins".to_owned()]
            } else {
                Vec::new()
            },
            ..Growth::default()
        }
    }
}

#[test]
fn stages_are_added_until_none_is_left() {
    let lab = Lab::new();
    let mut grow = Copies {
        rounds: vec![vec![], vec!["c1", "c2"], vec!["fails"], vec!["d1"]],
        may_fail: true,
        seen: Vec::new(),
    };
    // Nothing but what is added runs.
    let ran = lab.grow(two(), Setup::default(), &mut grow);
    println!("{}", ran.log);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    let ids: Vec<&str> = ran.summary.stages.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c1", "c2", "fails", "d1"]);
    assert_eq!(ran.summary.count(StageStatus::Failed), 1);
    assert!(ran.log.contains("note begins"), "{}", ran.log);
    assert_eq!(ran.summary.grown.as_ref().map(|pipeline| pipeline.nodes.len()), Some(6));
}

#[test]
fn a_failure_of_an_added_stage_fails_the_run_unless_it_is_a_result() {
    let mut grow = Copies {
        rounds: vec![vec![], vec!["fails"], vec!["d1"]],
        may_fail: false,
        seen: Vec::new(),
    };
    let ran = Lab::new().grow(two(), Setup::default(), &mut grow);
    assert_eq!(ran.summary.exit_code(), 1, "{}", ran.log);
    assert!(!ran.log.contains("d1"), "{}", ran.log);
}
