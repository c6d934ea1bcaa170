//! The message on a run that has ended, and the shapes of chat services.

use super::drift;
use crate::finding;
use runner_engine::{RunStatus, StageStatus, text};
use runner_history::Run;
use runner_history::schedule::Night;
use runner_pipeline::{Occasion, Shape};
use serde::Serialize;
use serde_json::{Value, json};

/// The most stages whose errors are told.
const ERRORS: usize = 20;

/// The most evaluations whose answers are told.
const ANSWERS: usize = 3;

/// The most characters of a message in Discord.
const DISCORD: usize = 2000;

/// A message about a run, or a night without one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Message {
    /// The occasions that it is of; empty for a run that was cancelled by hand.
    pub occasions: Vec<Occasion>,
    /// The pipeline's name.
    pub pipeline: String,
    /// The run's id.
    pub run: Option<String>,
    /// The night of the pipeline's schedule.
    pub night: Option<String>,
    /// The status of the run or of the night.
    pub status: &'static str,
    /// The run's duration in seconds.
    pub seconds: f64,
    /// The numbers of stages that are cached, and that ran.
    pub cached: usize,
    /// See above.
    pub ran: usize,
    /// The first stages that failed, and their errors.
    pub errors: Vec<StageError>,
    /// The answers of the first evaluations, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The alias that moved, and whereto.
    pub promotion: Option<String>,
    /// The stages in which samples begin to drift, or do no longer, with the samples.
    pub drift: Vec<String>,
    /// A line, and the lines after it.
    pub title: String,
    /// See above.
    pub text: String,
}

/// The error of a stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageError {
    /// The stage.
    pub stage: String,
    /// The error of the stage.
    pub error: String,
}

impl Message {
    /// The message on a run, whose small artifacts are read from `store`, beside the runs of earlier nights;
    /// `promotion` is the alias that it moved.
    pub fn on_run(run: &Run, promotion: Option<String>, store: &cache::Store) -> Self {
        let drift = drift::changes(run, store);
        let failed = run
            .stages
            .iter()
            .filter(|stage| stage.status == Some(StageStatus::Failed));
        let errors = failed.take(ERRORS).map(|stage| StageError {
            stage: stage.of.id.clone(),
            error: stage.error.clone().unwrap_or_else(|| "failed".to_owned()),
        });
        let mut occasions = Vec::new();
        match run.status {
            RunStatus::Done => occasions.push(Occasion::Success),
            // By hand; a night is cancelled by its timeout or with its machine.
            RunStatus::Interrupted if run.night.is_none() => {}
            _ => occasions.push(Occasion::Failure),
        }
        if promotion.is_some() {
            occasions.push(Occasion::Promotion);
        }
        if !drift.is_empty() {
            occasions.push(Occasion::Drift);
        }
        let count = |status| run.stages.iter().filter(|stage| stage.status == Some(status)).count();
        Self {
            occasions,
            pipeline: run.pipeline.clone(),
            run: Some(run.id.clone()),
            night: run.night.clone(),
            status: run.status.name(),
            seconds: run.seconds,
            cached: count(StageStatus::Cached),
            ran: count(StageStatus::Ran),
            errors: errors.collect(),
            answers: finding::answers(run, store, ANSWERS).0,
            promotion,
            drift,
            ..Self::default()
        }
        .worded()
    }

    /// The message on a night that came to no run, or whose decision failed.
    pub fn on_night(pipeline: &str, night: &Night) -> Self {
        let why = night.why.clone().unwrap_or_else(|| "no reason is known".to_owned());
        Self {
            occasions: vec![Occasion::Failure],
            pipeline: pipeline.to_owned(),
            run: night.run.clone(),
            night: Some(night.night.clone()),
            status: night.status.name(),
            errors: vec![StageError {
                stage: String::new(),
                error: why,
            }],
            ..Self::default()
        }
        .worded()
    }

    /// The message on a paper account whose policy does not act any more, in a night of the pipeline.
    pub fn on_account(pipeline: &str, (run, night): (&str, &str), status: &'static str, why: String) -> Self {
        Self {
            occasions: vec![Occasion::Failure],
            pipeline: pipeline.to_owned(),
            run: Some(run.to_owned()),
            night: Some(night.to_owned()),
            status,
            errors: vec![StageError {
                stage: String::new(),
                error: why,
            }],
            ..Self::default()
        }
        .worded()
    }

    fn worded(mut self) -> Self {
        let night = self
            .night
            .as_ref()
            .map(|night| format!(", night {night}"))
            .unwrap_or_default();
        self.title = text::visible(&format!("{}: {}{night}", self.pipeline, self.status)).into();
        let mut lines = Vec::new();
        for error in &self.errors {
            lines.push(match error.stage.as_str() {
                "" => error.error.clone(),
                stage => format!("{stage}: {}", error.error),
            });
        }
        lines.extend(self.answers.clone());
        lines.extend(self.promotion.clone());
        lines.extend(self.drift.iter().map(|drift| format!("drift, {drift}")));
        if let Some(run) = &self.run {
            let counts = format!("{} cached, {} ran", self.cached, self.ran);
            lines.push(format!("run {run}: {counts}, {}", text::duration(self.seconds)));
        }
        let lines: Vec<String> = lines.iter().map(|line| text::visible(line).into()).collect();
        self.text = lines.join("\n");
        self
    }

    /// The document of a webhook.
    pub fn document(&self, shape: Shape) -> Value {
        match shape {
            Shape::Json => json!(self),
            // https://docs.slack.dev/messaging/formatting-message-text
            Shape::Slack => {
                let escaped =
                    |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({ "text": format!("*{}*\n{}", escaped(&self.title), escaped(&self.text)) })
            }
            // https://learn.microsoft.com/connectors/teams: "When a Teams webhook request is received".
            Shape::Teams => {
                let block = |text: &str, weight: &str| {
                    json!({
                        "type": "TextBlock", "text": text, "weight": weight, "wrap": true,
                    })
                };
                let body = [
                    block(&self.title, "Bolder"),
                    block(&self.text.replace('\n', "\n\n"), "Default"),
                ];
                json!({
                    "type": "message",
                    "attachments": [{
                        "contentType": "application/vnd.microsoft.card.adaptive",
                        "contentUrl": null,
                        "content": {
                            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                            "type": "AdaptiveCard",
                            "version": "1.4",
                            "body": body,
                        },
                    }],
                })
            }
            // https://docs.discord.com/developers/resources/webhook#execute-webhook
            Shape::Discord => {
                let content: String = format!("**{}**\n{}", self.title, self.text)
                    .chars()
                    .take(DISCORD)
                    .collect();
                json!({ "content": content, "allowed_mentions": { "parse": [] } })
            }
        }
    }
}
