//! Selection of stages by command-line arguments.

use super::error::PipelineError;
use super::model::Pipeline;
use super::source::{Spot, Texts};
use super::suggest::{list, suggest};
use std::path::PathBuf;

/// The nodes selected by `names` and all that they need, in the pipeline's order; all nodes if `names` is empty. A name
/// is a stage's, for all points of its matrix, or that of one point (`train[seed=1]`).
///
/// # Errors
/// If there is no such stage.
pub fn select(pipeline: &Pipeline, names: &[String]) -> Result<Vec<usize>, PipelineError> {
    if names.is_empty() {
        return Ok((0..pipeline.nodes.len()).collect());
    }
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        let nodes = pipeline.nodes.iter().enumerate();
        found.extend(
            nodes
                .filter(|(_, node)| node.stage == *name || node.id == *name)
                .map(|(index, _)| index),
        );
        if found.len() == before {
            let stage = name.split('[').next().unwrap_or_default();
            let points: Vec<&str> = pipeline
                .nodes
                .iter()
                .filter(|node| node.stage == stage)
                .map(|node| node.id.as_str())
                .collect();
            let hint = if points.is_empty() {
                let mut stages: Vec<&str> = Vec::new();
                for node in &pipeline.nodes {
                    if !stages.contains(&node.stage.as_str()) {
                        stages.push(&node.stage);
                    }
                }
                suggest(name, "stages", stages)
            } else {
                format!("its points are {}", list(points))
            };
            let message = format!("the pipeline `{}` has no stage `{name}`", pipeline.name);
            return Err(argument("STAGE", name, message, hint));
        }
    }
    Ok(pipeline.graph.upstream(found).into_iter().collect())
}

/// The error of a command-line argument; `what` is the name of the argument.
fn argument(what: &str, text: &str, message: String, hint: String) -> PipelineError {
    let mut texts = Texts::default();
    let index = texts.push(PathBuf::from(what), text.to_owned());
    texts.error(Spot::whole(index, text), message, hint)
}
