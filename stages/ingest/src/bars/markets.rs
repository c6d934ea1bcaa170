//! The markets of bars: calendar, currency, time zone and unit of prices, each with its origin.
//!
//! A fact is taken from the configuration, or else from the columns of the file, the suffix of the symbol
//! (`7203.T`), the layout, the data, or an assumption. Sessions that a calendar lacks show that it is another
//! market's: unless the calendar was configured, it is replaced by the one that fits the data, or refused.

use super::config::BarsConfig;
use super::file_bars::{FileBars, Wanted};
use super::rows::CLOSE;
use crate::missing_days::{ADDS_DAYS, beyond_calendar};
use crate::number;
use crate::whose::listed;
use chrono::NaiveDate;
use datasets::calendar::{CalendarName, currency_of, fits, found, is_trading_day, market_of, of_hundredths};
use datasets::layout::Layout;
use datasets::{Date, DateRange, Fact, FactOrigin};
use serde_json::{Value, json};
use stages_core::{Context, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// From so many sessions on that a calendar lacks, and on which prices moved, it is not the calendar of the
/// data.
const FOREIGN: usize = 2;

/// So many days that are an exchange's sessions, each and no other, tell it against a symbol's suffix.
const TELLING: usize = 100;

/// The unit of prices that are in hundredths of their currency.
const PENCE: &str = "pence";

/// The markets of a table of bars.
pub(super) struct Markets {
    /// The calendar of each symbol.
    calendars: BTreeMap<String, CalendarName>,
    /// The calendar of the table: where its symbols have several, the days on which any may trade.
    pub calendar: Fact<CalendarName>,
    /// The currency of prices, ISO 4217.
    pub currency: Fact<String>,
    /// The unit of prices, where it is not the currency.
    unit: Option<Fact<&'static str>>,
}

impl Markets {
    /// The calendar of a symbol.
    pub(super) fn of(&self, symbol: &str) -> CalendarName {
        self.calendars.get(symbol).copied().unwrap_or(self.calendar.value)
    }

    /// The calendar, or those of the symbols where they have several.
    pub(super) fn by_symbol(&self) -> Value {
        let mut all = self.calendars.values();
        match all.all(|calendar| *calendar == self.calendar.value) {
            true => json!(self.calendar.value),
            false => json!(self.calendars),
        }
    }

    /// The facts as the metadata of the table has them.
    pub(super) fn facts(&self) -> Value {
        let mut facts = json!({ "calendar": self.calendar, "currency": self.currency });
        if let Some(session) = self.calendar.value.session() {
            facts["time_zone"] = json!(Fact::new(session.time_zone, self.calendar.origin.clone()));
        }
        if let Some(unit) = &self.unit {
            facts["unit"] = json!(unit);
        }
        let mut symbols: BTreeMap<CalendarName, Vec<&str>> = BTreeMap::new();
        for (symbol, calendar) in &self.calendars {
            symbols.entry(*calendar).or_default().push(symbol);
        }
        if symbols.len() > 1 {
            let names = symbols
                .iter()
                .map(|(calendar, symbols)| (calendar.to_string(), json!(symbols)));
            facts["calendar"]["symbols"] = names.collect();
        }
        facts
    }

    /// Settles the facts for the wanted symbols of files, whose days are `all_days`, and warns of what is
    /// assumed or found.
    ///
    /// # Errors
    /// If the symbols have two currencies, or the data has sessions that its calendar lacks.
    pub(super) fn settle(
        context: &Context,
        config: &BarsConfig,
        layouts: &[Layout],
        files: &[FileBars],
        wanted: &Wanted<'_>,
        all_days: &BTreeSet<Date>,
    ) -> Result<Self, StageError> {
        let mut calendars: BTreeMap<String, Fact<CalendarName>> = BTreeMap::new();
        let mut currencies: BTreeMap<String, Fact<String>> = BTreeMap::new();
        let mut contradicted = BTreeSet::new();
        for (layout, file) in layouts.iter().zip(files) {
            let symbols = file.symbols.iter().filter(|(symbol, _)| wanted.has_symbol(symbol));
            for (symbol, stated) in symbols {
                let market = market_of(symbol);
                let of_layout = || match layout.is_described {
                    true => FactOrigin::Configuration,
                    false => FactOrigin::Layout(layout.name.clone()),
                };
                let calendar = (config
                    .calendar
                    .name()
                    .map(|name| Fact::new(name, FactOrigin::Configuration)))
                .or_else(|| stated.calendar.map(|name| Fact::new(name, FactOrigin::File)))
                .or_else(|| {
                    let is_configured = layout.is_described && !layout.facts.calendar_is_assumed;
                    is_configured.then(|| Fact::new(layout.facts.calendar, FactOrigin::Configuration))
                })
                .or_else(|| market.map(|market| Fact::new(market.calendar, FactOrigin::Name)))
                .unwrap_or_else(|| match layout.facts.calendar_is_assumed {
                    true => Fact::new(layout.facts.calendar, FactOrigin::Assumed),
                    false => Fact::new(layout.facts.calendar, of_layout()),
                });
                let set = Some(&config.currency).filter(|currency| !currency.is_empty());
                let of_column = stated.currency.as_ref();
                if let Some((set, whole)) = set.zip(of_column.and_then(|name| of_hundredths(name)))
                    && set == whole
                {
                    return Err(StageError::new(format!(
                        "`{}` states that the prices of {symbol} are in hundredths of {whole}, and `currency` that \
                        they are in {set}",
                        file.name
                    ))
                    .hint("leave `currency` out, or read these symbols in a stage of their own"));
                }
                // A sign that several currencies share states none.
                let is_shared = |name: &&String| number::currencies(name).len() > 1;
                let of_file = of_column.or(stated.written.as_ref()).filter(|name| !is_shared(name));
                let of_file = of_file.map(|name| match number::currencies(name) {
                    [one] => (*one).to_owned(),
                    _ => name.clone(),
                });
                if let Some((set, name)) = set.zip(of_file.as_ref())
                    && of_hundredths(name).unwrap_or(name) != set
                {
                    contradicted.insert(format!("{name} of {symbol}"));
                }
                let of_exchange = |calendar: &Fact<CalendarName>| {
                    currency_of(calendar.value)
                        .map(|name| Fact::new(name.to_owned(), calendar.origin.clone()))
                };
                let currency = (set.map(|name| Fact::new(name.clone(), FactOrigin::Configuration)))
                    .or_else(|| of_file.map(|name| Fact::new(name, FactOrigin::File)))
                    .or_else(|| {
                        let stated = layout.contract.currency.clone().filter(|_| layout.is_described);
                        stated.map(|name| Fact::new(name, FactOrigin::Configuration))
                    })
                    .or_else(|| market.map(|market| Fact::new(market.currency.to_owned(), FactOrigin::Name)))
                    .or_else(|| {
                        layout
                            .contract
                            .currency
                            .clone()
                            .map(|name| Fact::new(name, of_layout()))
                    })
                    .or_else(|| of_exchange(&calendar))
                    .unwrap_or_else(|| Fact::new(layout.facts.currency.clone(), FactOrigin::Assumed));
                let signs = stated.written.iter().chain(of_column.filter(is_shared));
                for sign in signs {
                    check_sign(sign, symbol, &file.name, &currency)?;
                }
                calendars.entry(symbol.clone()).or_insert(calendar);
                currencies.entry(symbol.clone()).or_insert(currency);
            }
        }
        if !contradicted.is_empty() {
            let stated: Vec<String> = contradicted.into_iter().collect();
            context.warn(
                format!(
                    "`currency: {}` is taken; the files state {}",
                    config.currency,
                    listed(&stated)
                ),
                Some("leave `currency` out for what the files state; prices are not converted"),
            );
        }
        let follows = follow_the_stated(context, &mut currencies);
        let (currency, unit) = one_currency(currencies)?;
        let mut groups: BTreeMap<(CalendarName, FactOrigin), Vec<String>> = BTreeMap::new();
        for (symbol, calendar) in calendars {
            groups
                .entry((calendar.value, calendar.origin))
                .or_default()
                .push(symbol);
        }
        let refused = match wanted.symbols.is_empty() {
            true => StageError::new("the files hold no rows").hint("a file needs rows below its header"),
            false => {
                StageError::new("no row is left: the files hold none of these symbols").hint("see `symbols`")
            }
        };
        refused.when(groups.is_empty())?;
        let (count, mut settled) = (groups.len(), Vec::new());
        for ((calendar, origin), symbols) in groups {
            let of_group = Wanted {
                symbols: if count == 1 { wanted.symbols } else { &symbols },
                dates: wanted.dates,
            };
            let mut of_several = BTreeSet::new();
            let days = match count {
                1 => all_days,
                _ => {
                    for file in files {
                        of_several.extend(file.days(context, &of_group)?);
                    }
                    &of_several
                }
            };
            let calendar = Fact::new(calendar, origin);
            let calendar = checked(context, files, &of_group, &symbols, days, calendar)?;
            if let Some(warning) = beyond_calendar(calendar.value, days) {
                context.warn(warning, Some(ADDS_DAYS));
            }
            settled.push((calendar, symbols));
        }
        let calendar = match settled.as_slice() {
            [(one, _)] => one.clone(),
            several => {
                let any = |name| several.iter().any(|(fact, _)| fact.value.base() == name);
                let value = match several.iter().all(|(fact, _)| fact.value == several[0].0.value) {
                    true => several[0].0.value,
                    false if any(CalendarName::Always) || any(CalendarName::None) => CalendarName::None,
                    false => CalendarName::Weekends,
                };
                let origins = several.iter().map(|(fact, _)| fact.origin.clone());
                Fact::new(value, origins.max().unwrap_or(FactOrigin::Assumed))
            }
        };
        let never_closes = |(fact, _): &&(Fact<CalendarName>, Vec<String>)| {
            matches!(fact.value.base(), CalendarName::Always | CalendarName::None)
        };
        let (always, others): (Vec<_>, Vec<_>) = settled.iter().partition(never_closes);
        if let (Some((_, of_always)), Some((fact, of_other))) = (always.first(), others.first()) {
            let first = |symbols: &[String]| symbols.first().cloned().unwrap_or_default();
            context.warn(
                format!(
                    "{} trades on every day and {} on those of `{}`: what is annualised for both is so by one \
                    number of periods a year",
                    first(of_always),
                    first(of_other),
                    fact.value
                ),
                Some("read them in a stage each for figures of each market, with `symbols: [ … ]`"),
            );
        }
        let mut assumed = Vec::new();
        if calendar.origin == FactOrigin::Assumed {
            assumed.push(format!("calendar: {}", calendar.value));
        }
        if currency.origin == FactOrigin::Assumed && !follows {
            assumed.push(format!("currency: {}", currency.value));
        }
        if !assumed.is_empty() {
            context.warn(
                format!(
                    "nothing states these facts of the bars, they are assumed: {}",
                    assumed.join(", ")
                ),
                Some("the settings of the same names state them"),
            );
        }
        let by_symbol = settled
            .into_iter()
            .flat_map(|(fact, symbols)| symbols.into_iter().map(move |symbol| (symbol, fact.value)));
        Ok(Self {
            calendars: by_symbol.collect(),
            calendar,
            currency,
            unit,
        })
    }
}

/// Where the currency of some symbols is known and that of others assumed, the others are taken to be in the
/// known one, with a warning. Returns whether there are such symbols.
fn follow_the_stated(context: &Context, currencies: &mut BTreeMap<String, Fact<String>>) -> bool {
    let known: BTreeSet<String> = currencies
        .values()
        .filter(|fact| fact.origin != FactOrigin::Assumed)
        .map(|fact| fact.value.clone())
        .collect();
    let Some(known) = known.first().filter(|_| known.len() == 1) else {
        return false;
    };
    let mut followed = Vec::new();
    for (symbol, fact) in currencies {
        if fact.origin == FactOrigin::Assumed {
            fact.value.clone_from(known);
            followed.push(symbol.as_str());
        }
    }
    if !followed.is_empty() {
        context.warn(
            format!(
                "nothing states the currency of {}: {known} is assumed, that of the other symbols",
                shown(&followed)
            ),
            Some("`currency:` states it; read symbols of another currency in a stage of their own"),
        );
    }
    !followed.is_empty()
}

/// Refuses a currency that the sign or code beside prices contradicts.
fn check_sign(sign: &str, symbol: &str, file: &str, currency: &Fact<String>) -> Result<(), StageError> {
    let one = [sign];
    let of_sign = match number::currencies(sign) {
        [] => &one[..],
        known => known,
    };
    StageError::new(format!(
        "the prices of {symbol} in `{file}` are written in `{sign}`, and the currency is {} ({})",
        currency.value, currency.origin
    ))
    .hint(format!("state the one of the prices: `currency: {}`", of_sign[0]))
    .when(!of_sign.contains(&currency.value.as_str()))
}

/// The currency of all symbols, and the unit of prices if that is a hundredth of it.
fn one_currency(
    currencies: BTreeMap<String, Fact<String>>,
) -> Result<(Fact<String>, Option<Fact<&'static str>>), StageError> {
    let mut symbols: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (symbol, currency) in &currencies {
        symbols.entry(currency.value.clone()).or_default().push(symbol);
    }
    let mut several = symbols.iter();
    if let (Some((one, here)), Some((other, there))) = (several.next(), several.next()) {
        let of_one = |name: &str| of_hundredths(name).unwrap_or(name).to_owned();
        let or_stated = match of_one(one) == of_one(other) {
            true => String::new(),
            false => format!("; where all prices are in one, state it: `currency: {one}`"),
        };
        return Err(StageError::new(format!(
            "the prices are in several currencies: {one} of {} and {other} of {}",
            shown(here),
            shown(there)
        ))
        .hint(format!(
            "read them in a stage each, with `symbols: [{}]` and `symbols: [{}]`{or_stated}",
            shown(here),
            shown(there)
        )));
    }
    let fact = currencies.into_values().max_by(|a, b| a.origin.cmp(&b.origin));
    let fact = fact.unwrap_or_else(|| Fact::new("USD".to_owned(), FactOrigin::Assumed));
    Ok(match of_hundredths(&fact.value) {
        Some(whole) => {
            let unit = Fact::new(PENCE, fact.origin.clone());
            (Fact::new(whole.to_owned(), fact.origin), Some(unit))
        }
        None => (fact, None),
    })
}

/// The first symbols of a list.
fn shown(symbols: &[&str]) -> String {
    const SHOWN: usize = 5;
    let first = symbols.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if symbols.len() > SHOWN {
        format!("{first}, …")
    } else {
        first
    }
}

/// The calendar of symbols with data on `days`: as it was stated, or the one that the data shows.
fn checked(
    context: &Context,
    files: &[FileBars],
    wanted: &Wanted<'_>,
    symbols: &[String],
    days: &BTreeSet<Date>,
    calendar: Fact<CalendarName>,
) -> Result<Fact<CalendarName>, StageError> {
    let foreign: BTreeSet<Date> = days
        .iter()
        .copied()
        .filter(|day| !is_trading_day(calendar.value, *day))
        .collect();
    if calendar.origin == FactOrigin::Configuration || foreign.len() < FOREIGN {
        return Ok(calendar);
    }
    let fits = fits(calendar.value, days);
    let moved = match fits {
        true => moved(context, files, wanted, &foreign)?,
        false => foreign,
    };
    let Some(first) = moved.first().filter(|_| moved.len() >= FOREIGN) else {
        return Ok(calendar);
    };
    let names: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let lacks = format!(
        "the calendar `{}` ({}) lacks {} sessions of {}, the first on {first} ({})",
        calendar.value,
        calendar.origin,
        moved.len(),
        shown(&names),
        NaiveDate::from(*first).format("%A"),
    );
    // A symbol that names its exchange, or a file that does, leaves the calendars of that country alone, and
    // one that has each of many days and no other.
    let is_named = matches!(calendar.origin, FactOrigin::Name | FactOrigin::File);
    let currency = |calendar| currency_of(calendar).filter(|currency| *currency != "EUR");
    let is_possible = |other: &CalendarName| {
        !is_named
            || currency(*other).is_some_and(|other| currency(calendar.value) == Some(other))
            || fits && days.len() >= TELLING && are_sessions(*other, days)
    };
    let other = found(calendar.value, days);
    if is_named && !fits && !other.is_some_and(|other| is_possible(&other)) {
        let other = other.map_or_else(String::new, |other| format!("; the days are those of `{other}`"));
        return Err(StageError::new(format!("{lacks}{other}")).hint(
            "if the dates are right, state the calendar: `calendar: none` keeps every day; dates that are instants \
            of UTC have their days in the zone of the exchange, which `zone: …` of the layout states",
        ));
    }
    match other.filter(is_possible) {
        Some(other) => {
            let hint = format!("state it: `calendar: {other}`");
            let taken = format!("{lacks}; the calendar `{other}` has all of them, and is taken");
            context.warn(taken, Some(&hint));
            Ok(Fact::new(other, FactOrigin::Found))
        }
        None if !fits => {
            context.warn(
                format!("{lacks}; every day is taken for a trading day"),
                Some("`calendar: none` states it; rows of no session, such as of months, need no exchange's"),
            );
            Ok(Fact::new(CalendarName::None, FactOrigin::Found))
        }
        // Days of no exchange: of every week, whatever its holidays.
        None if other == Some(CalendarName::Weekends) => {
            context.warn(
                format!("{lacks}; every day from Monday to Friday is taken for a trading day"),
                Some(&format!(
                    "`calendar: weekends` states it, and `calendar: {}` drops these rows",
                    calendar.value
                )),
            );
            Ok(Fact::new(CalendarName::Weekends, FactOrigin::Found))
        }
        None => {
            let name = calendar.value.name();
            let weekends = match calendar.value.base() {
                CalendarName::Weekends => "",
                _ => "`calendar: weekends` keeps every day from Monday to Friday, ",
            };
            Err(
                StageError::new(format!("{lacks}, and prices moved on them")).hint(format!(
                    "state the calendar of the exchange, such as `calendar: XTKS` or a changed one (`calendar: {{ \
                    base: {name}, open: [{first}] }}`); {weekends}`calendar: none` keeps every day, and `calendar: \
                    {name}` drops these rows"
                )),
            )
        }
    }
}

/// True if the days are the sessions of an exchange, with none missing between the first and the last.
fn are_sessions(calendar: CalendarName, days: &BTreeSet<Date>) -> bool {
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return false;
    };
    let mut sessions = (first.0..=last.0)
        .map(Date)
        .filter(|day| is_trading_day(calendar, *day));
    calendar != CalendarName::Weekends && sessions.all(|day| days.contains(&day))
}

/// The days among `foreign` on which the close of a symbol differs from the one before.
fn moved(
    context: &Context,
    files: &[FileBars],
    wanted: &Wanted<'_>,
    foreign: &BTreeSet<Date>,
) -> Result<BTreeSet<Date>, StageError> {
    let every = DateRange {
        from: Date(i32::MIN),
        to: Date(i32::MAX),
    };
    let mut moved = BTreeSet::new();
    let mut last: BTreeMap<std::sync::Arc<str>, f64> = BTreeMap::new();
    for file in files {
        for cut in 0..file.cuts.list.len() {
            context.check_cancelled()?;
            let mut bars = file.bars(context, &[cut], every, wanted)?;
            bars.sort_by(|a, b| (&a.symbol, a.date).cmp(&(&b.symbol, b.date)));
            for bar in bars {
                let close = bar.values[CLOSE];
                let before = last.insert(bar.symbol, close);
                if foreign.contains(&bar.date)
                    && before.is_some_and(|before| before != close && !close.is_nan())
                {
                    moved.insert(bar.date);
                }
            }
        }
    }
    Ok(moved)
}
