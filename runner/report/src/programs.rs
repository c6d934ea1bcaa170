//! The external programs of a run: their isolation, network and tools.

use super::html::{escape, table};
use cache::{ActionKey, Store};
use runner_engine::key::RUN;
use runner_history::Run;
use serde_json::Value;

/// A table of the stages that ran a program; nothing if there is none.
pub(super) fn section(run: &Run, store: &Store) -> String {
    let programs = run.stages.iter().filter(|stage| stage.kind == RUN);
    let rows: Vec<Vec<String>> = programs
        .map(|stage| {
            let config = stage.config.value();
            let tools = config["tools"].as_array().into_iter().flatten();
            let tools: Vec<&str> = tools.filter_map(Value::as_str).collect();
            let isolation = stage.key.and_then(|key| isolation(store, key)).unwrap_or_default();
            let network = isolation == "none" || config["network"] == true;
            vec![
                escape(&stage.id),
                escape(&isolation),
                if network { "yes" } else { "no" }.to_owned(),
                escape(&tools.join(", ")),
                escape(config["container"].as_str().unwrap_or_default()),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["stage", "isolation", "network", "tools", "container"];
    format!("<h2>Programs</h2>\n{}", table(&header, &rows))
}

/// The isolation in force when an action was computed.
fn isolation(store: &Store, key: ActionKey) -> Option<String> {
    let record = store.recorded(key).ok()??;
    Some(record.info.get("isolation")?.as_str()?.to_owned())
}
