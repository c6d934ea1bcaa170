//! Settings that the stages of this family share.

pub use crate::bad_rows::{MaxDropped, OnBadRows, Treatment};
use crate::files::nearest;
use datasets::calendar::is_trading_day;
use datasets::layout::{CalendarName, Layout, Table};
use datasets::quality::{Example, HOLE, HOLE_OF_WEEKDAYS, Tally};
use datasets::{Date, DateRange, layout};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use stages_core::dataset::Period;
use stages_core::{ConfigProblem, StageError};
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

/// "did you mean", or all there is.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// A layout that is described in the pipeline file.
pub trait CustomLayout:
    Serialize + for<'de> Deserialize<'de> + JsonSchema + Clone + fmt::Debug + PartialEq + Send + Sync
{
    /// The table it fills.
    const TABLE: Table;
    /// The layout that it describes.
    ///
    /// # Errors
    /// A column that does not exist, or one that is needed and not there.
    fn layout(&self) -> Result<Layout, ConfigProblem>;
}

/// The files' layout: `auto` (by their header), a name, or `{ columns: { ours: theirs, … }, … }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LayoutChoice<C> {
    /// Found by the header.
    #[default]
    Auto,
    /// One that is known by name.
    Named(String),
    /// One described here.
    Custom(Box<C>),
}

impl<C: CustomLayout> LayoutChoice<C> {
    /// Refuses a name that does not exist and a description that cannot work.
    ///
    /// # Errors
    /// The problem with it.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        match self {
            Self::Auto => Ok(()),
            Self::Named(name) if layout::find(C::TABLE, name).is_some() => Ok(()),
            Self::Named(name) => {
                let mut known = vec!["auto"];
                known.extend(layout::known(C::TABLE).iter().map(|layout| &*layout.name));
                Err(
                    ConfigProblem::new("layout", format!("there is no layout `{name}`")).hint(format!(
                        "{}; or describe it: `layout: {{ columns: … }}`",
                        suggestion(name, &known)
                    )),
                )
            }
            Self::Custom(custom) => custom.layout().map(drop),
        }
    }

    /// The layout of a file with this header.
    ///
    /// # Errors
    /// When no layout fits.
    pub fn resolve(&self, place: &str, header: &[String]) -> Result<Layout, StageError> {
        match self {
            Self::Custom(custom) => custom.layout().map_err(|problem| {
                let err = StageError::new(format!("{}: {}", problem.field, problem.message));
                match problem.hint {
                    Some(hint) => err.hint(hint),
                    None => err,
                }
            }),
            Self::Named(name) => layout::find(C::TABLE, name)
                .cloned()
                .ok_or_else(|| StageError::new(format!("there is no layout `{name}`"))),
            Self::Auto => layout::recognise(C::TABLE, header).cloned().ok_or_else(|| {
                let known: Vec<_> = layout::known(C::TABLE)
                    .iter()
                    .map(|layout| format!("{} ({})", layout.name, layout.recognise.join(",")))
                    .collect();
                StageError::new(format!(
                    "`{place}`: no layout is known with the header {}",
                    crate::value::shown_list(header)
                ))
                .hint(format!(
                    "say which column is which with `layout: {{ columns: {{ date: … }} }}`; known are {}",
                    known.join("; ")
                ))
            }),
        }
    }
}

impl<C: Serialize> Serialize for LayoutChoice<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Named(name) => serializer.serialize_str(name),
            Self::Custom(custom) => custom.serialize(serializer),
        }
    }
}

impl<'de, C: Deserialize<'de>> Deserialize<'de> for LayoutChoice<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<C>(PhantomData<C>);
        impl<'de, C: Deserialize<'de>> de::Visitor<'de> for Visitor<C> {
            type Value = LayoutChoice<C>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("`auto`, the name of a layout, or `{ columns: … }`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(match text {
                    "auto" => LayoutChoice::Auto,
                    name => LayoutChoice::Named(name.to_owned()),
                })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                C::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(|custom| LayoutChoice::Custom(Box::new(custom)))
            }
        }
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<C: JsonSchema> JsonSchema for LayoutChoice<C> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("LayoutOf{}", C::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let custom = generator.subschema_for::<C>();
        schemars::json_schema!({
            "description": "auto, the name of a layout, or { columns: { ours: theirs } }.",
            "anyOf": [{ "type": "string" }, custom]
        })
    }
}

/// Refuses a range of dates that ends before it begins.
///
/// # Errors
/// When it does.
pub fn check_dates(dates: Option<DateRange>) -> Result<(), ConfigProblem> {
    match dates {
        Some(dates) if dates.to < dates.from => Err(ConfigProblem::new(
            "dates",
            format!("{} is before {}", dates.to, dates.from),
        )
        .hint("both ends are included")),
        _ => Ok(()),
    }
}

/// The days on which data is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalendarChoice {
    /// As the layout knows; none where more than a twentieth of the days, and at least twenty, would be closed by it.
    #[default]
    Auto,
    /// The holidays of the United States stock exchanges.
    Us,
    /// Monday to Friday. Holidays are not known, so that missing days are not counted.
    Weekends,
    /// Every day.
    None,
}

impl CalendarChoice {
    /// The calendar for data of these days.
    pub fn resolve(self, of_layout: CalendarName, days: &BTreeSet<Date>) -> CalendarName {
        match self {
            Self::Us => CalendarName::Us,
            Self::Weekends => CalendarName::Weekends,
            Self::None => CalendarName::None,
            Self::Auto => {
                let closed = days.iter().filter(|day| !is_trading_day(of_layout, **day)).count();
                if closed >= 20 && closed * 20 > days.len() {
                    CalendarName::None
                } else {
                    of_layout
                }
            }
        }
    }
}

/// Counts the days that are missing between the first and the last of `days`, and the longer runs of them. Where the calendar knows weekends alone,
/// only a run that is longer than any season of holidays is counted.
pub fn count_missing_days(symbol: &str, calendar: CalendarName, days: &BTreeSet<Date>, tally: &mut Tally) {
    let (Some(&first), Some(&last)) = (days.first(), days.last()) else {
        return;
    };
    let (knows_holidays, hole) = match calendar {
        CalendarName::None => return,
        CalendarName::Weekends => (false, HOLE_OF_WEEKDAYS),
        _ => (true, HOLE),
    };
    let mut run: Vec<Date> = Vec::new();
    for day in (first.0..=last.0).map(Date) {
        if !is_trading_day(calendar, day) {
            continue;
        }
        if !days.contains(&day) {
            run.push(day);
            if knows_holidays {
                tally.add("missing_day", day, 1);
            }
            continue;
        }
        if let (true, Some(from), Some(to)) = (run.len() >= hole, run.first(), run.last()) {
            tally.add_rows("hole", *from, run.len() as u64, || Example {
                symbol: (!symbol.is_empty()).then(|| symbol.to_owned()),
                date: Some(*from),
                note: Some(format!("{} trading days to {to}", run.len())),
                ..Example::default()
            });
        }
        run.clear();
    }
}

/// The period of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// By the first day: one with more than 5,000 rows makes daily partitions, otherwise they are monthly (chains) or
    /// yearly (bars and rates).
    #[default]
    Auto,
    /// A day each.
    Day,
    /// A calendar month each.
    Month,
    /// A calendar year each.
    Year,
}

impl PartitionChoice {
    /// The period for a table whose first day has `rows` rows.
    pub fn resolve(self, rows: usize, small: Period) -> Period {
        match self {
            Self::Auto if rows > 5000 => Period::Day,
            Self::Auto => small,
            Self::Day => Period::Day,
            Self::Month => Period::Month,
            Self::Year => Period::Year,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_that_does_not_fit_is_not_used() {
        let days = |step: usize| (0..400).step_by(step).map(Date).collect::<BTreeSet<_>>();
        assert_eq!(
            CalendarChoice::Auto.resolve(CalendarName::Weekends, &days(1)),
            CalendarName::None
        );
        assert_eq!(
            CalendarChoice::Weekends.resolve(CalendarName::Us, &days(1)),
            CalendarName::Weekends
        );
        let weekdays = days(1).into_iter().filter(|day| !day.is_weekend()).collect();
        assert_eq!(
            CalendarChoice::Auto.resolve(CalendarName::Weekends, &weekdays),
            CalendarName::Weekends
        );
    }
}
