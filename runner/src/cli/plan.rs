//! `runner plan`.

use super::args::PlanArgs;
use super::session::Session;
use super::{exec, output};
use crate::engine::{self, Prediction};
use crate::error::Failure;
use crate::text;
use serde_json::json;

pub(crate) fn plan(session: &Session, args: &PlanArgs) -> Result<(), Failure> {
    let project = session.project(&args.pipeline)?;
    let options = exec::options(session, &project, "")?;
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    let count = |prediction| planned.iter().filter(|stage| stage.prediction == prediction).count();
    let (cached, runs, depends) = (
        count(Prediction::Cached),
        count(Prediction::Runs),
        count(Prediction::Depends),
    );
    let expected: f64 = planned
        .iter()
        .filter(|stage| stage.prediction != Prediction::Cached)
        .filter_map(|stage| stage.expected_seconds)
        .fold(0.0, |sum: f64, seconds| sum + seconds);
    if session.json {
        return output::print_json(&json!({
            "pipeline": project.pipeline.name,
            "stages": planned,
            "cached": cached,
            "runs": runs,
            "depends": depends,
            "expected_seconds": expected,
        }));
    }
    let rows: Vec<Vec<String>> = planned
        .iter()
        .map(|stage| {
            let expected = stage
                .expected_seconds
                .filter(|_| stage.prediction != Prediction::Cached);
            vec![
                stage.stage.clone(),
                stage.prediction.name().to_owned(),
                expected.map(text::duration).unwrap_or_default(),
                stage.reason.clone(),
            ]
        })
        .collect();
    let mut out = text::table(&["stage", "", "took", "why"], &rows, &[2]);
    out.push_str(&format!(
        "{cached} cached, {runs} would run, {depends} depend on what runs"
    ));
    if expected > 0.0 {
        out.push_str(&format!("; about {} of work by past runs", text::duration(expected)));
    }
    output::print(&(out + "\n"))
}
