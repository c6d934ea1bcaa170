//! Measures loading and Datalog: `load triples N FILE` writes N random triples; `load read FILE` reads,
//! indexes and opens them; `load closure NODES EDGES` derives a transitive closure, changes one edge, and
//! derives it again.

#![allow(clippy::print_stdout, reason = "an example")]

use stages_knowledge::datalog::{Model, Rules};
use stages_knowledge::sections::Section as _;
use stages_knowledge::text::{TripleForm, prolog, triples};
use stages_knowledge::{Derived, KnowledgeBase};
use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::time::Instant;

/// The next random number, by a linear congruential generator.
fn next(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((u128::from(*state >> 11) * u128::from(below)) >> 53) as u64
}

/// The peak of the resident memory, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0);
    kib / 1024
}

fn write(count: u64, path: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut state = 1;
    let entities = count / 10;
    for _ in 0..count {
        let (head, relation, tail) = (
            next(&mut state, entities),
            next(&mut state, 200),
            next(&mut state, entities),
        );
        writeln!(out, "entity_{head}\trelation_{relation}\tentity_{tail}")?;
    }
    Ok(out.flush()?)
}

fn read(path: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let text = std::fs::read_to_string(path)?;
    let program = triples(&text, &TripleForm::default())?;
    drop(text);
    let parsed = start.elapsed();
    let facts = program.clauses;
    let knowledge = KnowledgeBase::from_program(&program)?;
    drop(program);
    let indexed = start.elapsed();
    let out = format!("{path}.bin");
    knowledge.write(&mut std::io::BufWriter::new(std::fs::File::create(&out)?))?;
    let written = start.elapsed();
    println!(
        "{facts} triples: parsed {parsed:.2?}, indexed {indexed:.2?}, written {written:.2?}; peak {} MiB",
        peak()
    );
    println!(
        "{} constants, file {} MiB",
        knowledge.constants(),
        std::fs::metadata(&out)?.len() >> 20
    );
    Ok(())
}

fn no_check(_: &Model<'_>) -> Result<(), Infallible> {
    Ok(())
}

fn closure(nodes: u64, edges: u64) -> Result<(), Box<dyn Error>> {
    let mut state = 7;
    let lines: Vec<String> = (0..edges)
        .map(|_| {
            // Without cycles: an edge leads to a larger number.
            let (a, b) = (next(&mut state, nodes), next(&mut state, nodes));
            format!("edge({}, {}).\n", a.min(b), a.max(b) + 1)
        })
        .collect();
    let rules = "path(X, Y) :- edge(X, Y).\npath(X, Z) :- edge(X, Y), path(Y, Z).\n";
    let base = KnowledgeBase::from_program(&prolog(&format!("{}{rules}", lines.concat()), false)?)?;
    let checked = Rules::of(&base)?;
    let start = Instant::now();
    let model = Model::evaluate(&base, &checked, 0, &mut no_check)?;
    let instances = model.instances();
    let derived: Derived = model.derived().map_err(|_| "too many facts")?;
    println!(
        "closure of {edges} edges: {} facts, {instances} instances, {:.2?}; peak {} MiB",
        derived.len(),
        start.elapsed(),
        peak()
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["triples", count, path] => write(count.parse()?, path),
        ["read", path] => read(path),
        ["closure", nodes, edges] => closure(nodes.parse()?, edges.parse()?),
        _ => Err("load triples N FILE | load read FILE | load closure NODES EDGES".into()),
    }
}
