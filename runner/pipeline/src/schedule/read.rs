//! The block `schedule:`, from values to a [`Schedule`].

use super::cron::Cron;
use super::model::{CatchUp, Schedule, Then, WaitFor, When};
use crate::stage::interpolate::Scope;
use crate::text::problems::Problems;
use crate::text::suggest::suggest;
use crate::text::tree::{Key, Tree, Value, follow, steps};
use crate::text::typed;
use crate::text::typed::{Block, Text};
use crate::text::units::duration;
use datasets::calendar::CalendarName;
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value as Json;
use std::num::NonZeroUsize;
use std::time::Duration;

const WAIT_FOR: &str = "write `wait_for: { sources: [quotes], until: \"23:00\", stable_for: 2m }`";

/// The longest time after the close.
const LONGEST_AFTER_CLOSE: Duration = Duration::from_secs(12 * 3600);

pub(crate) const EVERY_DAY: &str = "every_day";

/// The nights on which `runner schedule` runs the pipeline.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["at"] }, { "required": ["cron"] }, { "type": "null" }]))]
pub(crate) struct Written {
    /// The local time, `18:30`, or a time after the exchange's close, which is earlier on a half day:
    /// `close + 2h30m`.
    at: Option<Text<When>>,
    /// Minute, hour, day of the month, month and day of the week: `30 18 * * 1-5`. Only on days of the
    /// calendar.
    cron: Option<Text<Cron>>,
    /// The time zone, an IANA name; by default that of the exchange, or UTC.
    timezone: Option<Text<TimeZone>>,
    /// The days that have a night: the trading days of an exchange by its ISO 10383 code or its name here, or
    /// every day.
    #[serde(default)]
    #[schemars(schema_with = "calendar_schema")]
    calendar: Option<Text<CalendarName>>,
    /// The date of the first night; by default, the latest that is due when the schedule is first run.
    #[schemars(with = "Option<String>")]
    from: Option<Date>,
    /// The data that a night waits for.
    wait_for: Option<WaitFor>,
    /// What happens to missed nights: all are made up for in order, the latest is, or none.
    #[serde(default)]
    catch_up: CatchUp,
    /// Values set in a night, as by `--set`: parameters, or `STAGE.with.KEY`; `${schedule.date}` and
    /// `${schedule.previous}` are its dates.
    #[expect(dead_code, reason = "they are applied as they are written")]
    params: Option<serde_json::Map<String, Json>>,
    /// The longest time that the run of a night takes.
    timeout: Option<Text<Duration>>,
    /// What the history keeps.
    keep: Option<Keep>,
    /// The decision of a registered policy once a night's run is done, as by `runner policy act`.
    then: Option<Then>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Keep {
    /// The number of the schedule's latest runs.
    runs: NonZeroUsize,
}

impl typed::Written for When {
    fn read(text: &str) -> Result<Self, String> {
        let Some(after) = text.trim().strip_prefix("close") else {
            let time = text.parse().ok().filter(|time: &TimeOfDay| time.hours() < 24.0);
            return time.map(Self::At).ok_or_else(String::new);
        };
        let after = match after.trim_start().strip_prefix('+') {
            Some(after) => duration(after.trim()),
            None => after.trim().is_empty().then_some(Duration::ZERO),
        };
        let after = after.filter(|after| *after <= LONGEST_AFTER_CLOSE);
        after.map(Self::AfterClose).ok_or_else(String::new)
    }
}

impl typed::Written for Cron {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|message| format!("{message}\n"))
    }
}

impl typed::Written for TimeZone {
    fn read(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(String::new)
    }
}

/// The codes and the names of all calendars.
fn calendars() -> impl Iterator<Item = &'static str> {
    let codes = CalendarName::CODES.iter().map(|(code, _)| *code);
    codes
        .chain(CalendarName::ALL.iter().map(|calendar| calendar.name()))
        .chain([EVERY_DAY])
}

impl typed::Written for CalendarName {
    fn read(text: &str) -> Result<Self, String> {
        let found = match text {
            EVERY_DAY => Some(Self::Always),
            text => Self::of_code(text),
        };
        found.ok_or_else(|| format!("\n{}", suggest(text, "calendars", calendars())))
    }
}

fn calendar_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": calendars().collect::<Vec<_>>(), "default": EVERY_DAY })
}

/// The parameters that the block sets, as written.
pub(crate) fn params(tree: &Tree) -> &[(Key, Tree)] {
    match tree.entry("params").map(|(_, params)| &params.value) {
        Some(Value::Map(entries)) => entries,
        _ => &[],
    }
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
    let written: Written = Block::of("schedule").fill(&own, scope, problems)?;
    let at = |path: &str| follow(tree, &steps(path));
    let when = match (written.at, written.cron) {
        (Some(Text(when)), None) => Some(when),
        (None, Some(Text(cron))) => Some(When::Cron(cron)),
        (None, None) => {
            let hint = "write `at: \"18:30\"`, or `cron: \"30 18 * * 1-5\"`";
            problems.fail(tree.spot, "a schedule needs `at` or `cron`", hint)
        }
        (Some(_), Some(_)) => {
            let spots =
                ["at", "cron"].map(|key| tree.entry(key).map(|(key, _)| key.spot).unwrap_or_default());
            let second = spots
                .into_iter()
                .max_by_key(|spot| (spot.place.line, spot.place.column));
            problems.fail(
                second.unwrap_or_default(),
                "a schedule has both `at` and `cron`",
                "keep one of them: `at: \"18:30\"` is every day of the calendar, `cron` any minutes of any \
                days",
            )
        }
    };
    let calendar = written.calendar.map_or(CalendarName::Always, |Text(calendar)| calendar);
    let session = calendar.session();
    let has_close = session.is_some() && calendar != CalendarName::Always;
    if matches!(when, Some(When::AfterClose(_))) && !has_close {
        problems.add(
            at("at").value.spot,
            "there is no close without an exchange",
            "name the exchange, such as `calendar: XNYS`, or write the time: `at: \"18:30\"`",
        );
    }
    if let Some(wait_for) = &written.wait_for {
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
    let zone = written.timezone.map(|Text(zone)| zone);
    let zone = zone.or_else(|| TimeZone::named(session.map_or("UTC", |session| session.time_zone)));
    (problems.count() == before).then_some(())?;
    Some(Schedule {
        when: when?,
        zone: zone?,
        calendar,
        from: written.from,
        wait_for: written.wait_for,
        catch_up: written.catch_up,
        timeout: written.timeout.map(|Text(timeout)| timeout),
        keep_runs: written.keep.map(|keep| keep.runs.get()),
        then: written.then,
    })
}
