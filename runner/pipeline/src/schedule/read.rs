//! The block `schedule:`, from values to a [`Schedule`].

use super::model::{Schedule, When};
use crate::stage::Scope;
use crate::text::{Block, Key, Problems, Tree, Value, follow, steps, suggest};
use datasets::calendar::CalendarName;

const WAIT_FOR: &str = "write `wait_for: { sources: [quotes], until: \"23:00\", stable_for: 2m }`";

/// The parameters that the block sets, as written.
pub(crate) fn params(tree: &Tree) -> &[(Key, Tree)] {
    tree.entry("params").map_or(&[], |(_, params)| params.entries())
}

/// Reads the block; `None` if it has errors. `stages` are the names of the pipeline's stages. The parameters
/// that it sets are checked where they are applied.
pub(crate) fn read(tree: &Tree, stages: &[&str], scope: &Scope, problems: &mut Problems) -> Option<Schedule> {
    let before = problems.count();
    let mut own = tree.clone();
    if let Value::Map(entries) = &mut own.value {
        entries.retain(|(key, value)| {
            key.name != "params" || !matches!(value.value, Value::Map(_)) && !value.is_null()
        });
    }
    let schedule: Schedule = Block::of("schedule").fill(&own, scope, problems)?;
    let at = |path: &str| follow(tree, &steps(path));
    match (schedule.at, schedule.cron) {
        (Some(_), None) | (None, Some(_)) => {}
        (None, None) => {
            let hint = "write `at: \"18:30\"`, or `cron: \"30 18 * * 1-5\"`";
            problems.add(tree.spot, "a schedule needs `at` or `cron`", hint);
        }
        (Some(_), Some(_)) => {
            let spots = ["at", "cron"]
                .into_iter()
                .filter_map(|key| Some(tree.entry(key)?.0.spot));
            let second = spots.max_by_key(|spot| (spot.place.line, spot.place.column));
            problems.add(
                second.unwrap_or_default(),
                "a schedule has both `at` and `cron`",
                "keep one of them: `at: \"18:30\"` is every day of the calendar, `cron` any minutes of any \
                days",
            );
        }
    }
    let calendar = schedule.calendar();
    let has_close = calendar.session().is_some() && calendar.base() != CalendarName::Always;
    if matches!(schedule.at, Some(When::AfterClose(_))) && !has_close {
        problems.add(
            at("at").value.spot,
            "a close needs an exchange",
            "name the exchange, such as `calendar: XNYS`, or write the time: `at: \"18:30\"`",
        );
    }
    if let Some(wait_for) = &schedule.wait_for {
        let named = at("wait_for.sources").value.items();
        for (name, tree) in wait_for.sources.iter().zip(named) {
            if !stages.contains(&name.as_str()) {
                let message = format!("the pipeline has no stage `{name}`");
                problems.add(tree.spot, message, suggest(name, "stages", stages.iter().copied()));
            }
        }
        if wait_for.sources.is_empty() && wait_for.files.is_empty() {
            let spot = at("wait_for").key.map_or(tree.spot, |key| key.spot);
            problems.add(spot, "`wait_for` names neither `sources` nor `files`", WAIT_FOR);
        }
    }
    if let Some(key) = at("then").key.filter(|key| stages.contains(&key.name.as_str())) {
        problems.add(
            key.spot,
            "a stage is called `then`, which is the name of the schedule's decision in the history of runs",
            "give the stage another name",
        );
    }
    if let Some(then) = &schedule.then {
        let spot = at("then").key.map_or(tree.spot, |key| key.spot);
        if then.act.is_none() && then.paper.is_none() {
            let hint =
                "write `then: { act: desk@champion, data: [today.csv] }`, or `then: { paper: desk-paper }`";
            problems.add(spot, "`then` names neither `act` nor `paper`", hint);
        } else if then.act.is_some() && then.data.is_empty() {
            let hint = "name the files of the night: `data: [\"quotes/${schedule.date}.csv\"]`";
            problems.add(spot, "`act` needs `data`", hint);
        }
    }
    (problems.count() == before).then_some(schedule)
}
