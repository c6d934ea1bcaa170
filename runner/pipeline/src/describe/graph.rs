//! Output of a pipeline's graph as text, Mermaid, Graphviz and SVG.

use crate::describe::svg::{SvgNode, draw};
use crate::{Pipeline, Work};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A short description of a node's work.
fn label(work: &Work) -> String {
    match work {
        Work::Kind { kind, .. } => kind.name().to_owned(),
        Work::Command(command) if let Some(python) = &command.python => match &python.kind {
            Some(kind) => kind.name.clone(),
            None => format!("python: {}", python.call),
        },
        Work::Command(command) => {
            let line = command.command.trim().lines().next().unwrap_or_default();
            let short: String = line.chars().take(40).collect();
            let more = short.len() < command.command.trim().len();
            format!("run: {short}{}", if more { "…" } else { "" })
        }
    }
}

/// The maximum width of a column of [`text`], in characters; a longer name moves the rest of its line.
const WIDEST: usize = 200;

/// One line for each stage, in topological order, with its inputs.
pub fn text(pipeline: &Pipeline) -> String {
    let width = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).min(WIDEST);
    let ids = width(&mut pipeline.nodes.iter().map(|node| node.id.chars().count()));
    let labels = width(&mut pipeline.nodes.iter().map(|node| label(&node.work).chars().count()));
    let mut out = String::new();
    for node in &pipeline.nodes {
        let inputs: Vec<String> = node
            .needs
            .iter()
            .flat_map(|(port, inputs)| {
                inputs
                    .iter()
                    .map(move |input| format!("{port}={}.{}", pipeline.nodes[input.node].id, input.output))
            })
            .chain(node.earlier.iter().flat_map(|(port, all)| match all.is_empty() {
                true => vec![format!("{port}=none")],
                false => all.iter().map(|earlier| format!("{port}={}", earlier.name)).collect(),
            }))
            .collect();
        let line = format!(
            "{:ids$}  {:labels$}  {}{}",
            node.id,
            label(&node.work),
            if inputs.is_empty() { "" } else { "<- " },
            inputs.join(" ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// A Mermaid flowchart.
pub fn mermaid(pipeline: &Pipeline) -> String {
    let escape = |text: &str| {
        text.replace('#', "#35;")
            .replace('"', "#quot;")
            .replace('<', "#lt;")
            .replace('>', "#gt;")
    };
    let mut out = "flowchart TD\n".to_owned();
    for (i, node) in pipeline.nodes.iter().enumerate() {
        let (id, label) = (escape(&node.id), escape(&label(&node.work)));
        let _ = writeln!(out, "    n{i}[\"{id}<br/>{label}\"]");
    }
    for (from, to, label) in edges(pipeline) {
        let _ = writeln!(out, "    n{from} -->|\"{}\"| n{to}", escape(&label));
    }
    out
}

/// A Graphviz digraph.
pub fn dot(pipeline: &Pipeline) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!(
        "digraph \"{}\" {{\n    rankdir=TB;\n    node [shape=box, fontname=\"sans-serif\"];\n",
        escape(&pipeline.name)
    );
    for (i, node) in pipeline.nodes.iter().enumerate() {
        let (id, label) = (escape(&node.id), escape(&label(&node.work)));
        let _ = writeln!(out, "    n{i} [label=\"{id}\\n{label}\"];");
    }
    for (from, to, label) in edges(pipeline) {
        let _ = writeln!(out, "    n{from} -> n{to} [label=\"{}\"];", escape(&label));
    }
    out.push_str("}\n");
    out
}

/// The edges without duplicates: index of the producer, index of the consumer, and the output's name.
fn edges(pipeline: &Pipeline) -> Vec<(usize, usize, String)> {
    let mut edges = Vec::new();
    for (to, node) in pipeline.nodes.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for input in node.needs.values().flatten() {
            if seen.insert((input.node, &input.output)) {
                edges.push((input.node, to, input.output.clone()));
            }
        }
    }
    edges
}

/// An SVG image, as a self-contained file.
pub fn svg(pipeline: &Pipeline) -> String {
    let nodes: Vec<SvgNode> = pipeline
        .nodes
        .iter()
        .map(|node| SvgNode {
            id: node.id.clone(),
            note: label(&node.work),
            class: String::new(),
            href: None,
        })
        .collect();
    draw(&nodes, &pipeline.graph).file(&pipeline.name)
}
