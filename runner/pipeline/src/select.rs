//! Selection of stages by command-line arguments.

use crate::model::{Node, Pipeline};
use crate::stage::parse_reference;
use crate::text::{PipelineError, Spot, Texts, list, suggest};
use std::path::Path;

/// The nodes selected by `names` and all that they need, in the pipeline's order; all nodes if `names` is
/// empty. [`named`] defines what a name selects.
///
/// # Errors
/// If there is no such stage, or no such point.
pub fn select(pipeline: &Pipeline, names: &[String]) -> Result<Vec<usize>, PipelineError> {
    if names.is_empty() {
        return Ok((0..pipeline.nodes.len()).collect());
    }
    let mut found = Vec::new();
    for name in names {
        found.extend(named(pipeline, name)?);
    }
    Ok(pipeline.graph.upstream(found).into_iter().collect())
}

/// Resolves a name to nodes: the name of a stage selects all points of its matrix, as does `train[*]`; a full
/// point (`train[lr=1e-4,seed=1]`) selects one node; a point that leaves axes open selects all points with
/// the given values, as in `needs:`.
///
/// # Errors
/// If there is no such stage, or no such point.
pub fn named(pipeline: &Pipeline, name: &str) -> Result<Vec<usize>, PipelineError> {
    let nodes = || pipeline.nodes.iter().enumerate();
    let exact = nodes().filter(|(_, node)| node.stage == name || node.id == name);
    let exact: Vec<usize> = exact.map(|(index, _)| index).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let fail = |message: String, hint: String| Err(argument("STAGE", name, message, hint));
    let (stage, select, output) = match parse_reference(name) {
        Ok(parsed) => parsed,
        Err(message) => return fail(message, "write STAGE, `STAGE[AXIS=VALUE]` or `STAGE[*]`".to_owned()),
    };
    let points: Vec<(usize, &Node)> = nodes().filter(|(_, node)| node.stage == stage).collect();
    let missing = format!("the pipeline `{}` has no stage `{name}`", pipeline.name);
    let Some((_, first)) = points.first() else {
        let mut stages: Vec<&str> = Vec::new();
        for node in &pipeline.nodes {
            if !stages.contains(&node.stage.as_str()) {
                stages.push(&node.stage);
            }
        }
        return fail(missing, suggest(stage, "stages", stages));
    };
    if let Some(output) = output {
        let stage = &name[..name.len() - output.len() - 1];
        return fail(
            format!("`{name}` is an output, not a stage"),
            format!("a stage runs as a whole: `{stage}`"),
        );
    }
    if let Some(axis) = select.axes().find(|axis| !first.point.contains_key(*axis)) {
        let axes = first.point.keys().map(String::as_str);
        return fail(
            format!("the stage `{stage}` has no axis `{axis}`"),
            suggest(axis, "axes", axes),
        );
    }
    let found: Vec<usize> = points
        .iter()
        .filter(|(_, node)| select.has(&node.point))
        .map(|(index, _)| *index)
        .collect();
    if found.is_empty() {
        let ids = points.iter().map(|(_, node)| node.id.as_str());
        return fail(missing, format!("its points are {}", list(ids)));
    }
    Ok(found)
}

/// Creates the error for a command-line argument; `what` is the argument's name.
fn argument(what: &str, text: &str, message: String, hint: String) -> PipelineError {
    Texts::of(Path::new(what), text.to_owned()).error(Spot::whole(0, text), message, hint)
}
