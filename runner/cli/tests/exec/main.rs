//! The command line and the engine, by the real binary, on pipelines of external programs.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod annual;
mod bounded;
mod cached;
mod commands;
mod containers;
mod data;
mod dvc;
mod earlier;
mod escapes;
mod failures;
mod first_files;
mod history;
mod imported_policy;
mod incremental;
mod killed;
mod ledger;
mod lookahead;
mod notify;
mod outside;
mod own_features;
mod own_table;
mod package_kinds;
mod policies;
mod policy_act;
mod policy_export;
mod python_agents;
mod python_envs;
mod python_parts;
mod python_policies;
mod python_stages;
mod python_to_onnx;
mod reasoning;
mod remote;
mod remote_sources;
mod rules;
mod search_command;
mod searches;
mod shared;
mod stocks;
mod study;
mod sweeps;
mod symbol_changes;
mod symbolic;
mod table_accounts;
mod table_input;
mod tools;
mod track;
mod trials;
mod trust;
mod typed_files;
mod typed_outputs;
mod watch;

use cache::{Artifact, Store};
use runner_testkit::{Ended, Project, files, marked, wait_for};
use stages_core::Input;

/// An output of a stage in the run of `ended`: `train.policy`.
fn input(project: &Project, ended: &Ended, name: &str) -> (Store, Input) {
    let store = Store::open(&project.home()).unwrap();
    let (stage, output) = name.rsplit_once('.').unwrap();
    let events = ended.events();
    let finished = events
        .iter()
        .find(|event| event["event"] == "stage_finished" && event["stage"] == stage);
    let digest = finished.unwrap()["outputs"][output].as_str().unwrap().parse().unwrap();
    let artifact = store.artifact(digest).unwrap();
    (store, Input { digest, artifact })
}

/// The artifact of an output.
fn artifact(project: &Project, ended: &Ended, name: &str) -> (Store, Artifact) {
    let (store, input) = input(project, ended, name);
    (store, input.artifact)
}
