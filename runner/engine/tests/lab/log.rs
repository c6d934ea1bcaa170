//! Events and plans as text, without what differs between runs: times, digests and directories.

use cache::{ArtifactDigest, Store};
use runner_engine::{Event, Planned, StageEvent, Stamped};
use std::path::Path;

/// All events of a run, a line each, but for the samples of what a running program does.
pub(crate) fn log(events: &[Stamped], store: &Store, dir: &Path) -> String {
    use StageEvent::{Progress, Usage};
    let is_sample = |event: &StageEvent| matches!(event, Usage { .. } | Progress { total: None, .. });
    let kept = events.iter().map(|event| &event.event).filter(|event| match event {
        Event::Stage { event, .. } => !is_sample(event),
        _ => true,
    });
    let lines: Vec<String> = kept.map(|event| line(event, store)).collect();
    hide_digests(&lines.join("\n")).replace(&dir.display().to_string(), "DIR")
}

fn line(event: &Event, store: &Store) -> String {
    match event {
        Event::Note { line } => format!("note {line}"),
        Event::StagesAdded { stages, .. } => format!("added {}", stages.join(" ")),
        Event::RunStarted {
            run, pipeline, stages, ..
        } => {
            format!("{run} of {pipeline}: {}", stages.join(", "))
        }
        Event::StageStarted {
            stage,
            threads,
            reason,
            ..
        } => match threads {
            1 => format!("{stage} starts: {reason}"),
            _ => format!("{stage} starts with {threads} threads: {reason}"),
        },
        Event::StageWaiting { stage, .. } => format!("{stage} waits for another process"),
        Event::Stage { stage, event } => said(stage, event),
        Event::StageRetried {
            stage,
            retry,
            retries,
            error,
        } => {
            format!("{stage} is retried, {retry} of {retries}: {error}")
        }
        Event::StageHealing { stage, found_by } => format!("{stage} is made again for {found_by}"),
        Event::DeterminismChecked { stage, same, .. } => format!("{stage} is the same: {same}"),
        Event::StageFinished {
            stage,
            status,
            outputs,
            error,
            hint,
            ..
        } => {
            let mut line = format!("{stage} {}", status.name());
            for (name, digest) in outputs {
                line.push_str(&format!(" {name}={:?}", text(store, *digest)));
            }
            if let Some(error) = error {
                line.push_str(&format!(": {error}{}", hinted(hint.as_deref())));
            }
            line
        }
        Event::RunFinished {
            status,
            cached,
            ran,
            failed,
            skipped,
            ..
        } => format!(
            "{}: {cached} cached, {ran} ran, {failed} failed, {skipped} skipped",
            status.name()
        ),
        Event::LookaheadChecked { .. } | Event::Decided { .. } | Event::Booked { .. } => format!("{event:?}"),
    }
}

/// The line of a stage's event.
fn said(stage: &str, event: &StageEvent) -> String {
    match event {
        StageEvent::Log { line } => format!("{stage} | {line}"),
        StageEvent::Usage { .. } => format!("{stage} uses the machine"),
        StageEvent::Progress { message, .. } => format!("{stage}: {message}"),
        StageEvent::Metric { name, step, value } => format!("{stage}: {name} at {step} is {value}"),
        StageEvent::Memo { hits, total } => format!("{stage}: {hits} of {total} memos"),
        StageEvent::Warning { message, hint } => {
            format!("{stage}: warning: {message}{}", hinted(hint.as_deref()))
        }
        StageEvent::Isolation {
            isolation, network, ..
        } => format!("{stage}: isolation {isolation}, network {network}"),
    }
}

fn hinted(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" (hint: {hint})")).unwrap_or_default()
}

/// The text of an artifact's files; `?` for one that is not intact.
pub(crate) fn text(store: &Store, digest: ArtifactDigest) -> String {
    let Ok(artifact) = store.artifact(digest) else {
        return "?".to_owned();
    };
    let bytes = |entry: &cache::Entry| store.local_blob(entry.blob).map(|blob| blob.to_vec()).ok();
    let texts = artifact.entries.iter().map(|entry| match bytes(entry) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => "?".to_owned(),
    });
    texts.collect()
}

/// Replaces shortened digests, ten hexadecimal digits, by `…`.
pub(crate) fn hide_digests(text: &str) -> String {
    let is_digest = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let hidden = words.map(|word| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match is_digest(bare) {
            true => word.replace(bare, "…"),
            false => word.to_owned(),
        }
    });
    hidden.collect()
}

/// A plan, a line for each stage.
pub(crate) fn plan(planned: &[Planned]) -> String {
    let lines = planned.iter().map(|planned| {
        let mut line = format!("{} {}: {}", planned.stage, planned.prediction.name(), planned.reason);
        if let Some(share) = &planned.share {
            line.push_str(&format!(", {share} cached"));
        }
        if let Some(warning) = &planned.warning {
            line.push_str(&format!(", warning: {} (hint: {})", warning.message, warning.hint));
        }
        line
    });
    hide_digests(&lines.collect::<Vec<_>>().join("\n"))
}
