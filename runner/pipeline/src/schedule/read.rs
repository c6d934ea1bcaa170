//! The block `schedule:`, from values to a [`Schedule`].

use super::cron::Cron;
use super::model::{CatchUp, Schedule, Then, WaitFor, When};
use crate::stage::interpolate::{Scope, fill};
use crate::text::problems::Problems;
use crate::text::suggest::suggest;
use crate::text::tree::{Key, Tree, Value};
use crate::text::units::{duration, is_name};
use datasets::calendar::CalendarName;
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use std::time::Duration;

/// The keys of `schedule:`.
const KEYS: [&str; 11] = [
    "at", "cron", "timezone", "calendar", "from", "wait_for", "catch_up", "params", "timeout", "keep", "then",
];
const OF_THEN: [&str; 4] = ["act", "data", "replace", "positions"];
const OF_WAIT: [&str; 4] = ["sources", "files", "until", "stable_for"];

/// The longest time after the close.
const LONGEST_AFTER_CLOSE: Duration = Duration::from_secs(12 * 3600);

pub(crate) const EVERY_DAY: &str = "every_day";

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
    let Value::Map(entries) = &tree.value else {
        problems.add(
            tree.spot,
            format!("`schedule` is {}, not a map of keys", tree.describe()),
            "write `schedule: { at: \"18:30\", timezone: America/New_York, calendar: XNYS }`",
        );
        return None;
    };
    let mut reader = Reader { scope, problems };
    let mut when: Option<When> = None;
    let (mut zone, mut calendar, mut from, mut wait_for) = (None, None, None, None);
    let (mut catch_up, mut timeout, mut keep_runs, mut then) = (CatchUp::default(), None, None, None);
    let (mut at_spot, mut is_misspelt) = (None, false);
    for (key, value) in entries {
        match key.name.as_str() {
            "at" | "cron" if at_spot.is_some() => reader.problems.add(
                key.spot,
                "a schedule has both `at` and `cron`",
                "keep one of them: `at: \"18:30\"` is every day of the calendar, `cron` any minutes of any \
                days",
            ),
            "at" => {
                at_spot = Some(value.spot);
                when = reader.at(value);
            }
            "cron" => {
                at_spot = Some(value.spot);
                when = reader.cron(value);
            }
            "timezone" => zone = reader.zone(value),
            "calendar" => calendar = reader.calendar(value),
            "from" => {
                from = reader.parsed(value, "from", "write a date: `2026-01-02`", |text| {
                    text.parse::<Date>().ok()
                })
            }
            "wait_for" => wait_for = reader.wait_for(value, key, stages),
            "catch_up" => catch_up = reader.catch_up(value).unwrap_or_default(),
            "params" => {
                if !matches!(value.value, Value::Map(_)) && !value.is_null() {
                    let described = value.describe();
                    reader.problems.add(
                        value.spot,
                        format!("`params` is {described}, not a map of parameters"),
                        "write `params: { as_of: \"${schedule.date}\" }`",
                    );
                }
            }
            "timeout" => timeout = reader.parsed(value, "timeout", DURATION, duration),
            "keep" => keep_runs = reader.keep(value),
            "then" => then = reader.then(value, key, stages),
            other => {
                let hint = suggest(other, "keys of a schedule", KEYS);
                is_misspelt |= hint.starts_with("did you mean");
                reader
                    .problems
                    .add(key.spot, format!("unknown key `{other}` in `schedule`"), hint);
            }
        }
    }
    if at_spot.is_none() && !is_misspelt {
        reader.problems.add(
            tree.spot,
            "a schedule needs `at` or `cron`",
            "write `at: \"18:30\"`, or `cron: \"30 18 * * 1-5\"`",
        );
    }
    let calendar = calendar.unwrap_or(CalendarName::Always);
    if let (Some(When::AfterClose(_)), None | Some(CalendarName::Always), Some(spot)) =
        (when, calendar.session().map(|_| calendar), at_spot)
    {
        reader.problems.add(
            spot,
            "there is no close without an exchange",
            "name the exchange, such as `calendar: XNYS`, or write the time: `at: \"18:30\"`",
        );
    }
    let zone =
        zone.or_else(|| TimeZone::named(calendar.session().map_or("UTC", |session| session.time_zone)));
    if problems.count() > before {
        return None;
    }
    Some(Schedule {
        when: when?,
        zone: zone?,
        calendar,
        from,
        wait_for,
        catch_up,
        timeout,
        keep_runs,
        then,
    })
}

const DURATION: &str = "give a duration with its unit, such as `90s`, `2m` or `6h`";

struct Reader<'a, 's> {
    scope: &'a Scope<'s>,
    problems: &'a mut Problems,
}

impl Reader<'_, '_> {
    /// The value of a text, interpolated; `None` with an error where it has none.
    fn parsed<T>(
        &mut self,
        tree: &Tree,
        what: &str,
        hint: impl Into<String>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let before = self.problems.count();
        let value = fill(tree, self.scope, self.problems);
        if self.problems.count() > before {
            return None;
        }
        let parsed = value.text().and_then(parse);
        if parsed.is_none() {
            let note = value.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            self.problems
                .add(tree.spot, format!("`{what}` is {}{note}", value.describe()), hint);
        }
        parsed
    }

    fn at(&mut self, tree: &Tree) -> Option<When> {
        let hint =
            "write a time of day, `at: \"18:30\"`, or one after the exchange's close: `at: close + 2h30m`";
        self.parsed(tree, "at", hint, |text| {
            if let Some(after) = text.trim().strip_prefix("close") {
                let after = match after.trim_start().strip_prefix('+') {
                    Some(after) => duration(after.trim())?,
                    None => after.trim().is_empty().then_some(Duration::ZERO)?,
                };
                return (after <= LONGEST_AFTER_CLOSE).then_some(When::AfterClose(after));
            }
            let time: TimeOfDay = text.parse().ok()?;
            (time.hours() < 24.0).then_some(When::At(time))
        })
    }

    fn cron(&mut self, tree: &Tree) -> Option<When> {
        let hint =
            "write minute, hour, day of the month, month and day of the week: `cron: \"30 18 * * 1-5\"`";
        let mut wrong = None;
        let cron = self.parsed(tree, "cron", hint, |text| {
            Some(Cron::parse(text).map_err(|message| wrong = Some(message)).ok())
        })?;
        if let Some(message) = wrong {
            self.problems.add(tree.spot, message, hint);
        }
        cron.map(When::Cron)
    }

    fn zone(&mut self, tree: &Tree) -> Option<TimeZone> {
        let hint = "write the IANA name of a time zone, such as `America/New_York` or `UTC`";
        self.parsed(tree, "timezone", hint, TimeZone::named)
    }

    fn calendar(&mut self, tree: &Tree) -> Option<CalendarName> {
        let names = CalendarName::ALL.iter().map(|calendar| calendar.name());
        let codes = CalendarName::CODES.iter().map(|(code, _)| *code);
        let known: Vec<&str> = codes.chain(names).chain([EVERY_DAY]).collect();
        let hint = suggest(tree.text().unwrap_or_default(), "calendars", known);
        self.parsed(tree, "calendar", hint, |text| match text {
            EVERY_DAY => Some(CalendarName::Always),
            text => CalendarName::of_code(text),
        })
    }

    fn catch_up(&mut self, tree: &Tree) -> Option<CatchUp> {
        let hint = "write `all`, `latest` or `none`";
        self.parsed(tree, "catch_up", hint, |text| {
            CatchUp::ALL
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, value)| *value)
        })
    }

    fn keep(&mut self, tree: &Tree) -> Option<usize> {
        let hint = "write `keep: { runs: 400 }`";
        let runs = match &tree.value {
            Value::Map(entries) => match entries.as_slice() {
                [(key, runs)] if key.name == "runs" => Some(runs),
                _ => None,
            },
            _ => None,
        };
        let Some(runs) = runs else {
            self.problems.add(
                tree.spot,
                format!("`keep` is {}, not `{{ runs: N }}`", tree.describe()),
                hint,
            );
            return None;
        };
        let value = fill(runs, self.scope, self.problems);
        let count = value.to_json().as_u64().filter(|count| *count > 0);
        if count.is_none() {
            let described = value.describe();
            self.problems
                .add(runs.spot, format!("`runs` is {described}, not a number of runs"), hint);
        }
        usize::try_from(count?).ok()
    }

    fn wait_for(&mut self, tree: &Tree, key: &Key, stages: &[&str]) -> Option<WaitFor> {
        let hint = "write `wait_for: { sources: [quotes], until: \"23:00\", stable_for: 2m }`";
        let Value::Map(entries) = &tree.value else {
            let described = tree.describe();
            self.problems
                .add(tree.spot, format!("`wait_for` is {described}, not a map of keys"), hint);
            return None;
        };
        let before = self.problems.count();
        let (mut sources, mut files, mut until, mut stable_for) =
            (Vec::new(), Vec::new(), None, Duration::ZERO);
        let mut has_until = false;
        for (key, value) in entries {
            match key.name.as_str() {
                "sources" => sources = self.texts(value, "sources", "write the names of stages: `[quotes]`"),
                "files" => {
                    files = self.texts(value, "files", "write paths: `[\"quotes/${schedule.date}.csv\"]`")
                }
                "until" => {
                    has_until = true;
                    let hint = "write the time of day after which the data is late: `until: \"23:00\"`";
                    until = self.parsed(value, "until", hint, |text| text.parse().ok());
                }
                "stable_for" => {
                    stable_for = self.parsed(value, "stable_for", DURATION, duration).unwrap_or_default();
                }
                other => self.problems.add(
                    key.spot,
                    format!("unknown key `{other}` in `wait_for`"),
                    suggest(other, "keys", OF_WAIT),
                ),
            }
        }
        for (name, spot) in &sources {
            if !stages.contains(&name.as_str()) {
                self.problems.add(
                    *spot,
                    format!("the pipeline has no stage `{name}`"),
                    suggest(name, "stages", stages.iter().copied()),
                );
            }
        }
        if self.problems.count() == before && sources.is_empty() && files.is_empty() {
            self.problems
                .add(key.spot, "`wait_for` names neither `sources` nor `files`", hint);
        }
        if self.problems.count() == before && !has_until {
            self.problems.add(
                key.spot,
                "`until` is missing in `wait_for`",
                "write the time of day after which the data is late: `until: \"23:00\"`",
            );
        }
        let names = |texts: Vec<(String, _)>| texts.into_iter().map(|(text, _)| text).collect();
        (self.problems.count() == before).then_some(())?;
        Some(WaitFor {
            sources: names(sources),
            files: names(files),
            until: until?,
            stable_for,
        })
    }

    fn then(&mut self, tree: &Tree, key: &Key, stages: &[&str]) -> Option<Then> {
        const HINT: &str = "write `then: { act: NAME@champion, data: [\"quotes/${schedule.date}.csv\"] }`";
        let Value::Map(entries) = &tree.value else {
            let described = tree.describe();
            self.problems
                .add(tree.spot, format!("`then` is {described}, not a map of keys"), HINT);
            return None;
        };
        let before = self.problems.count();
        if stages.contains(&key.name.as_str()) {
            self.problems.add(
                key.spot,
                "a stage is called `then`, which is the name of the schedule's decision in the history of \
                runs",
                "give the stage another name",
            );
        }
        let (mut act, mut data, mut replace, mut positions) = (None, Vec::new(), false, None);
        for (key, value) in entries {
            match key.name.as_str() {
                "act" => {
                    let hint = "write `NAME@ALIAS` or `NAME@VERSION` of a registered policy, such as \
                        `desk@champion`";
                    act = self.parsed(value, "act", hint, |text| {
                        let (name, version) = text.split_once('@')?;
                        (is_name(name) && !version.is_empty()).then(|| text.to_owned())
                    });
                }
                "data" => {
                    data = self.texts(value, "data", "write paths: `[\"quotes/${schedule.date}.csv\"]`")
                }
                "replace" => {
                    let value = fill(value, self.scope, self.problems);
                    match value.to_json().as_bool() {
                        Some(is_so) => replace = is_so,
                        None => {
                            let message = format!("`replace` is {}, not true or false", value.describe());
                            self.problems.add(value.spot, message, "write `replace: true`");
                        }
                    }
                }
                "positions" => {
                    let hint = "write the path of a file, `none` or `played`";
                    positions = self.parsed(value, "positions", hint, |text| Some(text.to_owned()));
                }
                other => self.problems.add(
                    key.spot,
                    format!("unknown key `{other}` in `then`"),
                    suggest(other, "keys", OF_THEN),
                ),
            }
        }
        if self.problems.count() == before && (act.is_none() || data.is_empty()) {
            let missing = if act.is_none() { "act" } else { "data" };
            self.problems
                .add(tree.spot, format!("`{missing}` is missing in `then`"), HINT);
        }
        (self.problems.count() == before).then_some(())?;
        Some(Then {
            act: act?,
            data: data.into_iter().map(|(path, _)| path).collect(),
            replace,
            positions,
        })
    }

    /// A list of texts, or one of them, with their places.
    fn texts(&mut self, tree: &Tree, what: &str, hint: &str) -> Vec<(String, crate::text::source::Spot)> {
        let items = match &tree.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(tree),
        };
        let mut texts = Vec::new();
        for item in items {
            let text = self.parsed(item, what, hint, |text| (!text.is_empty()).then(|| text.to_owned()));
            texts.extend(text.map(|text| (text, item.spot)));
        }
        texts
    }
}
