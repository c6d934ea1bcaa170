//! The market data of each pipeline's last run: a calendar of the rows of each day, and the findings of its
//! quality rules.

use crate::calendar::{Day, calendar, legend};
use crate::layout::{Page, link, run_address, stage_address};
use crate::parts::{card, empty, folded, tiles};
use crate::site::Site;
use cache::{Artifact, ArtifactDigest, Store};
use datasets::Date;
use runner_engine::{Failure, RunStatus, text};
use runner_history::{self as history, Run};
use runner_report::figures::{Unit, shown};
use runner_report::html::{escape, table};
use runner_report::{findings_table, rows_by_day};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of runs among which the last of each pipeline is looked for.
const RUNS: usize = 500;

/// The number of partitions that are listed of a data set: the last ones.
const PARTITIONS: usize = 12;

/// The number of years whose calendars are shown unfolded: the last ones.
const YEARS: usize = 2;

/// The number of years whose calendars are drawn: the last ones.
const MOST_YEARS: usize = 60;

/// The number of partitions of a data set above which it has no calendar.
const MOST_READ: usize = 2_000;

/// The rows by day of data sets, each read once: an artifact never changes.
#[derive(Clone, Default)]
pub(crate) struct Days(Arc<Mutex<HashMap<ArtifactDigest, Rows>>>);

/// The rows of each day; `None` if the data set has no dates, or is not in the store.
type Rows = Option<Arc<BTreeMap<Date, u64>>>;

impl Days {
    fn of(&self, store: &Store, digest: ArtifactDigest, artifact: &Artifact) -> Rows {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            return known.clone();
        }
        let is_small = artifact.entries.len() <= MOST_READ;
        let rows = is_small.then(|| rows_by_day(store, artifact)).flatten().map(Arc::new);
        // What is missing now may be there later.
        if rows.is_some() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(digest, rows.clone());
        }
        rows
    }
}

pub(crate) fn data(site: &Site) -> Result<Page, Failure> {
    let (runs, _) = history::last(&site.runs, RUNS)?;
    let mut last: BTreeMap<&str, &Run> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Done) {
        last.insert(&run.pipeline, run);
    }
    let mut body = String::from("<h1>Data</h1>\n");
    let store = if last.is_empty() { None } else { Some(site.store()?) };
    let mut is_empty = true;
    for (pipeline, run) in last {
        let mut part = String::new();
        for stage in run.stages.iter().filter(|stage| stage.kind.starts_with("ingest/")) {
            for (output, digest) in stage.outputs.iter() {
                let Some((store, artifact)) = store
                    .as_ref()
                    .and_then(|store| Some((store, store.artifact(*digest).ok()?)))
                else {
                    continue;
                };
                let address = format!("{}/outputs/{output}", stage_address(&run.id, &stage.id));
                let name = format!("{}.{output}", stage.id);
                let rows = site.days.of(store, *digest, &artifact);
                let _ = write!(
                    part,
                    "<h3>{}</h3>\n{}",
                    link(&address, &name),
                    block(&format!("{pipeline}-{name}"), &name, &artifact, rows)
                );
            }
        }
        if !part.is_empty() {
            is_empty = false;
            let heading = format!(
                "{} <span class=\"dim\">{}</span>",
                escape(pipeline),
                link(&run_address(&run.id), &run.id)
            );
            body.push_str(&card(&heading, &part));
        }
    }
    if is_empty {
        body.push_str(&empty(
            "No data has been read yet.",
            "A stage <code>ingest/…</code> reads market data: <code>runner data inspect FILE</code> shows \
            what a \
            file has, <code>runner init FILE</code> writes a pipeline for it.",
        ));
    }
    Ok(Page::new("Data", "/data", body))
}

/// The days that findings name, with the rules that found something there.
fn found(findings: &[Value]) -> BTreeMap<Date, Vec<&str>> {
    let mut days: BTreeMap<Date, Vec<&str>> = BTreeMap::new();
    for finding in findings {
        let rule = finding["rule"].as_str().unwrap_or_default();
        for day in finding["examples"].as_array().into_iter().flatten() {
            if let Some(day) = day.as_str().and_then(|day| day.parse().ok()) {
                days.entry(day).or_default().push(rule);
            }
        }
    }
    days
}

/// A data set: its size, the rows of each day, its last partitions and its findings. `id` tells it from the
/// others of the page.
fn block(id: &str, name: &str, artifact: &Artifact, rows: Rows) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let count = |n: usize| shown(n as f64, Unit::Count);
    let findings = artifact.meta["quality"].as_array().map_or(&[][..], Vec::as_slice);
    let affected = findings
        .iter()
        .filter(|finding| finding["rows"].as_u64().is_none_or(|rows| rows > 0));
    let all = artifact.meta["rows"].as_u64().map(|rows| count(rows as usize));
    let span = rows
        .as_ref()
        .and_then(|rows| Some(format!("{} to {}", rows.keys().next()?, rows.keys().next_back()?)));
    let mut out = tiles(&[
        ("Rows", all.unwrap_or_default()),
        ("Days", rows.as_ref().map(|rows| count(rows.len())).unwrap_or_default()),
        ("From, to", span.unwrap_or_default()),
        ("Findings", affected.count().to_string()),
        ("Size", text::size(size)),
    ]);
    if let Some(rows) = rows {
        out.push_str(&years(id, name, &rows, &found(findings)));
    }
    out.push_str(&findings_table(findings));
    let skipped = artifact.entries.len().saturating_sub(PARTITIONS);
    let partitions: Vec<Vec<String>> = artifact.entries[skipped..]
        .iter()
        .map(|entry| vec![escape(&entry.path), text::size(entry.size)])
        .collect();
    out + &folded(
        &format!("partitions-{id}"),
        &format!("Partitions, {}", artifact.entries.len()),
        &table(&["partition", "size"], &partitions),
    )
}

/// A calendar for each year, the last ones unfolded: darker with more rows, marked where a finding names the
/// day, blank on days of the week without rows. Years without rows are not drawn, nor those before the last
/// [`MOST_YEARS`].
fn years(id: &str, name: &str, rows: &BTreeMap<Date, u64>, found: &BTreeMap<Date, Vec<&str>>) -> String {
    let (Some((first, _)), Some((last, _))) = (rows.first_key_value(), rows.last_key_value()) else {
        return String::new();
    };
    let most = rows.values().copied().max().unwrap_or(1).max(1);
    let mut drawings: Vec<String> = Vec::new();
    let (mut missing, mut weekdays) = (0, 0);
    let mut filled: Vec<i32> = rows.keys().map(|date| date.ymd().0).collect();
    filled.dedup();
    let earlier = filled.len().saturating_sub(MOST_YEARS);
    let without = (last.ymd().0 - first.ymd().0 + 1) as usize - filled.len();
    for year in filled.into_iter().skip(earlier) {
        let mut days = Vec::new();
        let end = |month, day, other| Date::from_ymd(year, month, day).map_or(other, |date| date.0);
        for date in (end(1, 1, first.0).max(first.0)..=end(12, 31, last.0).min(last.0)).map(Date) {
            let count = rows.get(&date).copied();
            let rules = found.get(&date).map(|rules| rules.join(", "));
            // Day 0 was a Thursday.
            let is_weekend = (date.0 + 3).rem_euclid(7) > 4;
            let class = match (&rules, count) {
                (Some(_), _) => "found",
                (None, None) if is_weekend => continue,
                (None, None) => "gap",
                (None, Some(count)) => {
                    ["l1", "l2", "l3", "l4"][((4 * count).div_ceil(most) as usize).clamp(1, 4) - 1]
                }
            };
            missing += usize::from(count.is_none() && !is_weekend);
            weekdays += usize::from(!is_weekend);
            let title = rules.map(|rules| format!("{date}: {rules}; {} rows", count.unwrap_or(0)));
            days.push(Day { date, class, title });
        }
        drawings.push(calendar(&format!("{name}, {year}: rows of each day"), &days, true));
    }
    // Of dividends, splits and the like, most days have none.
    let open = if 2 * missing > weekdays { 0 } else { YEARS };
    let old = drawings.len().saturating_sub(open);
    let recent: String = drawings[old..].concat();
    let mut out = format!("<div class=\"years\">{recent}</div>");
    if old > 0 {
        let before = drawings[..old].iter().rev().map(String::as_str).collect::<String>();
        out.push_str(&folded(
            &format!("years-{id}"),
            &text::count(old, "earlier year"),
            &before,
        ));
    }
    let most = format!("up to {} rows", shown(most as f64, Unit::Count));
    let blank = format!("no rows, {}", text::count(missing, "weekday"));
    let legend = legend(&[
        ("l1", "few rows"),
        ("l4", most.as_str()),
        ("gap", blank.as_str()),
        ("found", "named by a finding"),
    ]);
    let without_rows = format!("{} without rows", text::count(without, "year"));
    for (n, years) in [(earlier, text::count(earlier, "earlier year")), (without, without_rows)] {
        if n > 0 {
            let _ = writeln!(out, "<p class=\"dim\">Not drawn: {years}.</p>");
        }
    }
    out + &legend
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mistyped date costs neither time nor room.
    #[test]
    fn years_without_rows_are_counted_instead_of_drawn() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        let mut rows: BTreeMap<Date, u64> = (0..730).map(|n| (day("2018-01-01").plus(n), 1)).collect();
        let plain = years("p-bars", "bars", &rows, &BTreeMap::new());
        assert_eq!(plain.matches("<svg class=\"calendar fit\"").count(), 2);
        assert!(
            !plain.contains("Not drawn") && plain.contains("no rows, 0 weekdays"),
            "{plain}"
        );
        rows.insert(day("9999-12-31"), 1);
        let wrong = years("p-bars", "bars", &rows, &BTreeMap::new());
        assert_eq!(wrong.matches("<svg class=\"calendar fit\"").count(), 3);
        assert!(wrong.contains("Not drawn: 7979 years without rows."), "{wrong}");
        assert!(wrong.contains("id=\"fold-years-p-bars\""), "{wrong}");
        let centuries = (1900..2000)
            .map(|year| (Date::from_ymd(year, 6, 1).unwrap(), 1))
            .collect();
        let long = years("p-bars", "bars", &centuries, &BTreeMap::new());
        assert_eq!(long.matches("<svg class=\"calendar fit\"").count(), MOST_YEARS);
        assert!(long.contains("Not drawn: 40 earlier years."), "{long}");
    }
}
