//! Random Horn programs with the answers of SWI-Prolog (`tests/reference/symbolic`): those of the vendored
//! file, and fresh ones of `make_programs.py`, which asks SWI-Prolog now.
//!
//! A test target with `harness = false` includes this file by its path.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, a goal, the bound on the depth of its proofs, and the number of answers that are compared.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Case {
    pub id: u64,
    pub program: String,
    pub goal: String,
    pub depth: usize,
    pub k: usize,
    #[serde(flatten)]
    pub expected: Expected,
}

/// The findings of the search for the goal; the fields are those of `tests/reference/symbolic/README.md`.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Expected {
    pub vars: Vec<String>,
    pub answers: Vec<Vec<String>>,
    pub more: bool,
    pub depth_cut: bool,
    pub occurs_check: bool,
    pub uses: u64,
    pub proof_uses: u64,
    pub proof: String,
    pub min_depth: usize,
    pub first_clauses: Vec<u32>,
    pub resolvents: Vec<Vec<String>>,
}

fn reference() -> PathBuf {
    let references = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("tests/reference/symbolic"));
    references
        .into_iter()
        .find(|dir| dir.is_dir())
        .expect("tests/reference/symbolic")
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The vendored programs.
pub(crate) fn vendored() -> Vec<Case> {
    let cases = read(&reference().join("programs.jsonl"));
    assert_eq!(cases.len(), 300);
    cases
}

/// The program that fresh programs need and this machine lacks, in words.
pub(crate) fn missing() -> Option<String> {
    let is_missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    let missing = ["swipl", "python3"].into_iter().find(is_missing);
    missing.map(|program| format!("{program} is not installed"))
}

/// Programs that SWI-Prolog answers now, in one process: as many as `RUNNER_TEST_PROGRAMS` says.
pub(crate) fn fresh(seed: u32) -> Vec<Case> {
    let count = std::env::var("RUNNER_TEST_PROGRAMS").unwrap_or("300".to_owned());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fresh.jsonl");
    let script = reference().join("make_programs.py");
    let mut made = Command::new("python3");
    let made = made
        .arg(script)
        .args([&count, &seed.to_string()])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let cases = read(&path);
    assert_eq!(cases.len(), count.parse::<usize>().unwrap());
    cases
}
