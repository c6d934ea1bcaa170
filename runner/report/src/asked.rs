//! The first lines of a report: the question that a run was to answer.

use crate::evaluation::Evaluation;
use crate::figures::{Unit, shown};
use crate::html::{escape, escape_content};
use runner_engine::text;
use runner_history::{Run, StageRun, Warning, resolved_pipeline};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The most names in a line.
const MOST_NAMES: usize = 6;

/// The most warnings that stand on the first screen.
const MOST_WARNINGS: usize = 8;

/// The title, the description, and a line each of the data, the policies, the test and the run.
pub(crate) fn head(run: &Run, evaluations: &[Evaluation]) -> String {
    let mut out = format!("<h1>{}</h1>\n", escape(&run.pipeline));
    if let Some(text) = description(run) {
        out.push_str(&format!("<p>{}</p>\n", escape(&text)));
    }
    let mut tests: Vec<&str> = evaluations
        .iter()
        .map(|evaluation| evaluation.test.as_str())
        .filter(|test| !test.is_empty())
        .collect();
    tests.dedup();
    let facts = [
        ("Data", names(run, "ingest/", source)),
        ("Policy", names(run, "train/", training)),
        ("Test", text::some(tests, 2)),
        ("Run", ran(run)),
    ];
    let facts: String = facts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(text)))
        .collect();
    out + &format!("<dl class=\"facts\">\n{facts}</dl>\n")
}

/// The pipeline's description as the run began; of a run that did not keep it, as the file has it, unless the
/// file has changed since.
fn description(run: &Run) -> Option<String> {
    if let Ok(Some(pipeline)) = resolved_pipeline(&run.dir)
        && pipeline.description.is_some()
    {
        return pipeline.description;
    }
    let changed = std::fs::metadata(&run.file).and_then(|meta| meta.modified()).ok()?;
    let is_older = changed <= SystemTime::from(run.started);
    let text = is_older.then(|| std::fs::read_to_string(&run.file))?;
    runner_pipeline::description(&text.ok()?)
}

/// The stages of a family in words, each once.
fn names(run: &Run, family: &str, words: fn(&StageRun, &str) -> String) -> String {
    let stages = run.stages.iter();
    let mut names: Vec<String> = stages
        .filter_map(|stage| Some(words(stage, stage.kind.strip_prefix(family)?)))
        .collect();
    names.sort();
    names.dedup();
    text::some(names.iter().map(String::as_str), MOST_NAMES)
}

/// A source of data: its kind, and the file that it reads.
fn source(stage: &StageRun, kind: &str) -> String {
    let config = stage.config.value();
    let path = match &config["path"] {
        Value::Array(paths) => paths.first().and_then(Value::as_str),
        path => path.as_str(),
    };
    match path {
        Some(path) => format!("{} from {path}", kind.replace('_', " ")),
        None => kind.replace('_', " "),
    }
}

fn training(stage: &StageRun, kind: &str) -> String {
    let steps = stage.config.value()["total_timesteps"].as_f64();
    match steps {
        Some(steps) => format!("{kind} ({} steps)", shown(steps, Unit::Count)),
        None => kind.to_owned(),
    }
}

fn ran(run: &Run) -> String {
    format!(
        "{}, {}, {}, {}",
        run.id,
        run.started.format("%Y-%m-%d %H:%M:%S UTC"),
        shown(run.seconds, Unit::Seconds),
        run.program
    )
}

/// The troubles of a run: the error that ended it, then the warnings, a line each, with the remedy folded.
pub(crate) fn troubles(run: &Run) -> String {
    let mut out = String::new();
    let failed = run.stages.iter().find(|stage| stage.error.is_some());
    if let (Some(error), Some(stage)) = (run.first_error(), failed) {
        let hint = stage.hint.as_deref().map(|hint| format!(" Remedy: {}", escape(hint)));
        out.push_str(&format!(
            "<p class=\"verdict error\"><strong>The run failed.</strong> {}{}</p>\n",
            escape(&error),
            hint.unwrap_or_default()
        ));
    }
    let mut by_text: BTreeMap<&Warning, Vec<&str>> = BTreeMap::new();
    for stage in &run.stages {
        for warning in &stage.warnings {
            let stages = by_text.entry(warning).or_default();
            if stages.last() != Some(&stage.id.as_str()) {
                stages.push(&stage.id);
            }
        }
    }
    let line = |(warning, stages): (&&Warning, &Vec<&str>)| {
        let words = format!(
            "<strong>{}</strong>: {}",
            escape(&text::some(stages.iter().copied(), 2)),
            escape_content(&warning.message)
        );
        match &warning.hint {
            None => format!("<p class=\"warning\">{words}</p>\n"),
            Some(hint) => format!(
                "<details class=\"warning\"><summary>{words}</summary><p>Remedy: {}</p></details>\n",
                escape_content(hint)
            ),
        }
    };
    let lines: Vec<String> = by_text.iter().map(line).collect();
    let (first, rest) = lines.split_at(lines.len().min(MOST_WARNINGS));
    if !first.is_empty() {
        out.push_str(&format!(
            "<div class=\"warnings\" role=\"note\" aria-label=\"{}\">\n{}",
            text::count(lines.len(), "warning"),
            first.concat()
        ));
        if !rest.is_empty() {
            let summary = text::count(rest.len(), "more warning");
            out.push_str(&format!(
                "<details><summary>{summary}</summary>\n{}</details>\n",
                rest.concat()
            ));
        }
        out.push_str("</div>\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use runner_engine::{Reporter as _, RunStatus, StageStatus};
    use runner_history::{ResolvedStage, Writer};
    use serde_json::json;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    fn run() -> Run {
        Run {
            id: "r".to_owned(),
            dir: "r".into(),
            pipeline: "p".to_owned(),
            file: "p.yaml".into(),
            params: BTreeMap::new(),
            program: String::new(),
            night: None,
            accounts: Vec::new(),
            status: RunStatus::Failed,
            started: DateTime::UNIX_EPOCH,
            seconds: 0.0,
            stages: Vec::new(),
            lookahead: None,
            damaged: 0,
        }
    }

    /// Warnings stand in a line each, once for all stages that have them, with the remedy folded.
    #[test]
    fn warnings_and_the_error_stand_on_the_first_screen() {
        let warned = |id: &str| {
            let mut stage = StageRun::new(Arc::new(ResolvedStage {
                id: id.to_owned(),
                ..ResolvedStage::default()
            }));
            stage.warnings.push(Warning {
                message: "few <rows>".to_owned(),
                hint: Some("add data".to_owned()),
            });
            stage
        };
        let mut run = Run {
            stages: vec![warned("a"), warned("b")],
            ..run()
        };
        let html = troubles(&run);
        assert!(
            html.contains(
                "<summary><strong>a, b</strong>: few &lt;rows&gt;</summary><p>Remedy: add data</p>"
            ),
            "{html}"
        );
        assert_eq!(html.matches("few").count(), 1, "{html}");
        run.stages[1].status = Some(StageStatus::Failed);
        run.stages[1].error = Some("no disk".to_owned());
        assert!(troubles(&run).contains("<strong>The run failed.</strong> b: no disk</p>"));
    }

    /// A comment that is written after a run does not describe it.
    #[test]
    fn the_description_is_that_of_the_file_when_the_run_began() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path(), "r").unwrap();
        let resolved = json!({
            "name": "p", "description": "As it was.", "file": "p.yaml", "params": {}, "stages": [],
        });
        writer.pipeline(serde_json::from_value(resolved).unwrap());
        writer.flush();
        let file = dir.path().join("p.yaml");
        std::fs::write(&file, "# As it is.\nversion: 1\n").unwrap();
        let at = |dir: PathBuf, started| {
            description(&Run {
                dir,
                file: file.clone(),
                started,
                ..run()
            })
        };
        let later = DateTime::<Utc>::from(SystemTime::now() + Duration::from_secs(60));
        assert_eq!(at(dir.path().join("r"), later).unwrap(), "As it was.");
        assert_eq!(at(dir.path().join("old"), later).unwrap(), "As it is.");
        assert_eq!(at(dir.path().join("old"), DateTime::UNIX_EPOCH), None);
    }
}
