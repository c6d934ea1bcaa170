//! Stages of a run by their names.

use super::model::{Run, StageRun};
use runner_engine::{Failure, text};
use runner_pipeline::{parse_reference, suggest};

/// Finds the stage of a run by name: the stage's id, or a name that selects a single point of its matrix as
/// in `needs:` (`train[lr=1e-4]`, if only one point has that rate).
///
/// # Errors
/// If the name selects no stage, or several points.
pub fn find_stage<'r>(run: &'r Run, name: &str) -> Result<&'r StageRun, Failure> {
    if let Some(stage) = run.stage(name) {
        return Ok(stage);
    }
    let missing = || Failure::usage(format!("run {} has no stage `{name}`", run.id));
    let form = "write `RUN/STAGE` or `RUN/STAGE[AXIS=VALUE]`";
    let (stage, select, output) =
        parse_reference(name).map_err(|message| Failure::usage(message).hint(form))?;
    let of_stage: Vec<&StageRun> = run.stages.iter().filter(|known| known.stage == stage).collect();
    if of_stage.is_empty() {
        let mut stages: Vec<&str> = run.stages.iter().map(|stage| stage.stage.as_str()).collect();
        stages.dedup();
        return Err(missing().hint(suggest(stage, "stages", stages)));
    }
    if output.is_some() {
        return Err(Failure::usage(format!("`{name}` is an output, not a stage")).hint(form));
    }
    let found: Vec<&StageRun> = of_stage
        .iter()
        .copied()
        .filter(|stage| select.has(&stage.point))
        .collect();
    let some = |stages: &[&StageRun]| text::some(stages.iter().map(|stage| stage.id.as_str()), 8);
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(missing().hint(format!("its points are {}", some(&of_stage)))),
        several => Err(Failure::usage(format!(
            "`{name}` stands for {} points of run {}",
            several.len(),
            run.id
        ))
        .hint(format!("give one: {}", some(several)))),
    }
}
