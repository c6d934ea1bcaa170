//! The external programs of a run: their isolation, network and tools.

use super::html::{self, escape};
use cache::{ActionKey, Store};
use runner_engine::key::RUN;
use runner_history::Run;
use serde_json::Value;

/// A table of the stages that ran a program; empty if there are none, and `None` when the stages' records
/// cannot be read in time.
pub(super) fn section(run: &Run, store: &Store, in_time: &impl Fn() -> bool) -> Option<String> {
    let programs = run.stages.iter().filter(|stage| stage.kind == RUN);
    let rows: Option<Vec<Vec<String>>> = programs
        .map(|stage| {
            if !in_time() {
                return None;
            }
            let config = stage.config.value();
            let tools = config["tools"].as_array().into_iter().flatten();
            let tools: Vec<&str> = tools.filter_map(Value::as_str).collect();
            let isolation = stage.key.and_then(|key| isolation(store, key)).unwrap_or_default();
            let network = isolation == "none" || config["network"] == true;
            Some(vec![
                escape(&stage.id),
                escape(&isolation),
                if network { "yes" } else { "no" }.to_owned(),
                escape(&tools.join(", ")),
                escape(config["container"].as_str().unwrap_or_default()),
            ])
        })
        .collect();
    let header = ["stage", "isolation", "network", "tools", "container"];
    Some(html::section("<h3>Programs</h3>", &header, &rows?))
}

/// The isolation in force when an action was computed.
fn isolation(store: &Store, key: ActionKey) -> Option<String> {
    let record = store.recorded(key).ok()??;
    Some(record.info.get("isolation")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_within;
    use runner_engine::RunStatus;
    use runner_history::{ResolvedStage, StageRun};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    /// A cached run of a thousand programs has a thousand records: none is read for a page that is late.
    #[test]
    fn records_are_not_read_after_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let stage = ResolvedStage {
            id: "s".to_owned(),
            kind: RUN.to_owned(),
            ..ResolvedStage::default()
        };
        let run = Run {
            id: "r".to_owned(),
            dir: dir.path().to_owned(),
            pipeline: "p".to_owned(),
            file: dir.path().join("p.yaml"),
            params: BTreeMap::new(),
            program: String::new(),
            night: None,
            accounts: Vec::new(),
            status: RunStatus::Done,
            started: std::time::SystemTime::now().into(),
            seconds: 0.0,
            stages: vec![StageRun::new(Arc::new(stage))],
            lookahead: None,
            damaged: 0,
        };
        let page = section(&run, &store, &|| true).unwrap();
        assert!(page.contains("<h3>Programs</h3>"), "{page}");
        assert_eq!(section(&run, &store, &|| false), None);
        assert!(
            write_within(&run, dir.path(), &store, Duration::ZERO)
                .unwrap()
                .is_none()
        );
        assert!(
            write_within(&run, dir.path(), &store, Duration::from_secs(60)).is_ok_and(|page| page.is_some())
        );
    }
}
