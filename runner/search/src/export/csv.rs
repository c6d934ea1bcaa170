//! The trials as a table, `trials.csv`.

use crate::record::Record;
use runner_engine::timestamp;
use serde_json::Value;

/// The trials as comma-separated values, one a row: number, state, the objectives at the last rung that it
/// reached (also of each seed), what the constraints are exceeded by, the objectives by rung, times, and the
/// settings. A setting that is not active and a result that is not there are empty.
pub fn csv(record: &Record) -> String {
    let search = &record.header.search;
    let objectives: Vec<String> = search
        .objective
        .0
        .iter()
        .map(|objective| String::from(objective.metric.clone()))
        .collect();
    let names: Vec<&String> = search.over.keys().collect();
    let mut header: Vec<String> = ["trial", "state", "rung", "resource"].map(str::to_owned).into();
    header.extend(objectives.iter().cloned());
    header.push("violation".to_owned());
    for seed in 0..search.seeds.count {
        header.extend(objectives.iter().map(|name| format!("{name}[seed={seed}]")));
    }
    if record.header.rungs.len() > 1 {
        for (rung, resource) in record.header.rungs.iter().enumerate() {
            let at = resource.unwrap_or(rung as u64);
            header.extend(objectives.iter().map(|name| format!("{name}@{at}")));
        }
    }
    header.extend(["seconds", "first", "last", "error"].map(str::to_owned));
    header.extend(names.iter().map(|name| (*name).clone()));
    let mut text = line(&header);
    for row in record.trials() {
        let sound = row.sound();
        let number = |value: Option<&f64>| value.map(f64::to_string).unwrap_or_default();
        let mut cells = vec![
            row.trial.to_string(),
            row.state.name().to_owned(),
            sound.map(|result| result.rung.to_string()).unwrap_or_default(),
            sound
                .and_then(|result| result.resource)
                .map(|at| at.to_string())
                .unwrap_or_default(),
        ];
        let width = 0..objectives.len();
        cells.extend(
            width
                .clone()
                .map(|i| number(sound.and_then(|result| result.objectives.get(i)))),
        );
        cells.push(number(sound.map(|result| &result.score.violation)));
        for seed in 0..search.seeds.count as usize {
            let seeds = sound.and_then(|result| result.seeds.get(seed));
            cells.extend(width.clone().map(|i| number(seeds.and_then(|values| values.get(i)))));
        }
        if record.header.rungs.len() > 1 {
            for rung in 0..record.header.rungs.len() {
                let at = row.at(rung);
                cells.extend(
                    width
                        .clone()
                        .map(|i| number(at.and_then(|result| result.objectives.get(i)))),
                );
            }
        }
        let error = row.results.iter().rev().find_map(|result| result.error.clone());
        cells.extend([
            row.seconds.to_string(),
            timestamp(row.first),
            row.last.map(timestamp).unwrap_or_default(),
            error.unwrap_or_default(),
        ]);
        cells.extend(names.iter().map(|name| match row.settings.get(*name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }));
        text += &line(&cells);
    }
    text
}

/// A row of cells (RFC 4180).
fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
