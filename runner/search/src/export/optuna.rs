//! A search as a study of Optuna: the file of its journal storage, in which each line is an operation.
//! `optuna-dashboard FILE` opens it, as does
//! `optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(FILE)))`.

use crate::record::Record;
use crate::space::is_same;
use crate::trials::{TrialRow, TrialState};
use runner_engine::timestamp;
use runner_pipeline::Values;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The operations of Optuna's `JournalOperation` that are written.
const CREATE_STUDY: u8 = 0;
const SET_STUDY_USER_ATTR: u8 = 2;
const CREATE_TRIAL: u8 = 4;

/// The search as lines of a journal. Rungs are intermediate values, with the resource as the step; a trial's
/// attributes are the results of its seeds, its time and its run. Choices that are lists or maps are their
/// JSON texts.
pub fn journal(record: &Record) -> String {
    let header = &record.header;
    let directions = header
        .search
        .objective
        .0
        .iter()
        .map(|objective| 1 + u8::from(objective.maximize));
    let mut operations = vec![json!({
        "op_code": CREATE_STUDY,
        "study_name": header.id,
        "directions": directions.collect::<Vec<_>>(),
    })];
    let metrics = header
        .search
        .objective
        .0
        .iter()
        .map(|objective| String::from(objective.metric.clone()));
    let attributes = [
        ("pipeline", json!(header.pipeline)),
        ("metrics", json!(metrics.collect::<Vec<_>>())),
        (
            "runs",
            json!(record.runs.iter().map(|(ran, _)| &ran.run).collect::<Vec<_>>()),
        ),
    ];
    operations.extend(attributes.map(|(name, value)| {
        json!({ "op_code": SET_STUDY_USER_ATTR, "study_id": 0, "user_attr": { name: value } })
    }));
    operations.extend(record.trials().iter().map(|row| trial(record, row)));
    let line = |mut operation: Value| {
        operation["worker_id"] = json!("runner");
        operation.to_string() + "\n"
    };
    operations.into_iter().map(line).collect()
}

fn trial(record: &Record, row: &TrialRow) -> Value {
    let (mut distributions, mut params) = (Map::new(), Map::new());
    let mut attributes: BTreeMap<String, Value> = BTreeMap::new();
    for (name, domain) in &record.header.search.over {
        let Some(value) = row.settings.get(name) else {
            continue;
        };
        match internal(&domain.values, value) {
            Some(internal) => {
                params.insert(name.clone(), internal);
                distributions.insert(name.clone(), json!(distribution(&domain.values).to_string()));
            }
            // The file's own value, outside of the range that is searched.
            None => {
                attributes.insert(name.clone(), value.clone());
            }
        }
    }
    let result = row.sound();
    let is_single = record.header.search.objective.0.len() == 1;
    let mut steps = Map::new();
    if is_single && record.header.rungs.len() > 1 {
        for result in &row.results {
            if let (Some(step), Some(value)) = (result.resource, result.objectives.first()) {
                steps.insert(step.to_string(), json!(value));
            }
        }
    }
    let values = match row.state {
        TrialState::Done | TrialState::Pruned => result.map(|result| json!(result.objectives)),
        TrialState::Running | TrialState::Waiting | TrialState::Failed => None,
    };
    attributes.insert("seconds".to_owned(), json!(row.seconds));
    if let Some(result) = result {
        attributes.insert("rung".to_owned(), json!(result.rung));
        attributes.insert("seeds".to_owned(), json!(result.seeds));
    }
    if let Some(error) = row.results.iter().rev().find_map(|result| result.error.as_ref()) {
        attributes.insert("error".to_owned(), json!(error));
    }
    let run = record
        .runs
        .iter()
        .find(|(_, time)| row.last.is_some_and(|last| last <= *time));
    if let Some((ran, _)) = run {
        attributes.insert("run".to_owned(), json!(ran.run));
    }
    let mut system = Map::new();
    if let (false, Some(result)) = (record.header.search.constraints.is_empty(), result) {
        system.insert("constraints".to_owned(), json!([result.score.violation]));
    }
    let mut operation = json!({
        "op_code": CREATE_TRIAL,
        "study_id": 0,
        "state": state(row.state),
        "datetime_start": timestamp(row.first),
        "value": null,
        "values": values,
        "distributions": distributions,
        "params": params,
        "user_attrs": attributes,
        "system_attrs": system,
        "intermediate_values": steps,
    });
    if let (Some(last), true) = (row.last, state(row.state) != 0) {
        operation["datetime_complete"] = json!(timestamp(last));
    }
    operation
}

/// The number of a state in Optuna's `TrialState`. A trial that waits for its next rung is under way there.
fn state(state: TrialState) -> u8 {
    match state {
        TrialState::Running | TrialState::Waiting => 0,
        TrialState::Done => 1,
        TrialState::Pruned => 2,
        TrialState::Failed => 3,
    }
}

/// Optuna's distribution of a setting. The upper bound is a multiple of the step above the lower one.
fn distribution(values: &Values) -> Value {
    match values {
        Values::Float { low, high, log, step } => {
            let high = step.map_or(*high, |step| low + ((high - low) / step + 1e-9).floor() * step);
            let attributes = json!({ "low": low, "high": high, "log": log, "step": step });
            json!({ "name": "FloatDistribution", "attributes": attributes })
        }
        Values::Integer { low, high, log, step } => {
            let high = low + (high - low) / step * step;
            let attributes = json!({ "low": low, "high": high, "log": log, "step": step });
            json!({ "name": "IntDistribution", "attributes": attributes })
        }
        Values::Choice(choices) => {
            let choices: Vec<Value> = choices.iter().map(plain).collect();
            json!({ "name": "CategoricalDistribution", "attributes": { "choices": choices } })
        }
    }
}

/// A choice as Optuna takes it: text, number, truth value or null; others as their JSON text.
fn plain(choice: &Value) -> Value {
    match choice {
        Value::Array(_) | Value::Object(_) => json!(choice.to_string()),
        choice => choice.clone(),
    }
}

/// A value as the journal has it: a number, or the index of a choice. `None` if it is outside the range.
fn internal(values: &Values, value: &Value) -> Option<Value> {
    match values {
        Values::Float { low, high, .. } => {
            let number = value.as_f64()?;
            (*low <= number && number <= *high).then(|| json!(number))
        }
        Values::Integer { low, high, .. } => {
            let number = value.as_i64()?;
            (*low <= number && number <= *high).then(|| json!(number as f64))
        }
        Values::Choice(choices) => choices
            .iter()
            .position(|choice| is_same(choice, value))
            .map(|i| json!(i)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_end_at_a_multiple_of_their_step() {
        let values = Values::Float {
            low: 0.1,
            high: 1.0,
            log: false,
            step: Some(0.3),
        };
        let high = distribution(&values)["attributes"]["high"].as_f64().unwrap();
        assert!((high - 1.0).abs() < 1e-12);
        let values = Values::Integer {
            low: 2,
            high: 9,
            log: false,
            step: 3,
        };
        assert_eq!(distribution(&values)["attributes"]["high"], 8);
    }

    #[test]
    fn lists_are_texts() {
        let values = Values::Choice(vec![json!([64, 64]), json!("tanh"), json!(null)]);
        assert_eq!(
            distribution(&values)["attributes"]["choices"],
            json!(["[64,64]", "tanh", null])
        );
    }
}
