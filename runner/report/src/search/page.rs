//! A search as HTML.

use super::parallel::{self, Axis, Line};
use super::scale::{in_a_line, labels, position};
use super::scatter::{Dot, Scatter};
use super::tables::Texts;
use super::view::View;
use crate::chart::{WIDTH, cut, figure};
use crate::html::{collapsed, escape, section as heading, table};
use runner_engine::text;
use runner_search::trials::{RungResult, TrialRow};
use std::fmt::Write as _;

/// The number of settings whose slices are drawn: the most important.
const SLICES: usize = 8;
/// The number of trials that are listed at once.
const LISTED: usize = 10;
/// The width of the table of trials, in characters.
const WIDE: usize = 140;

/// The section of a search: figures, charts and tables.
pub fn section(view: &View) -> String {
    let header = &view.record.header;
    let seeds = text::count(header.search.seeds.count, "seed");
    let mut out = format!(
        "<h2>Search</h2>\n<p>{} <span class=\"dim\">{} · {seeds} · {}</span></p>\n",
        escape(&view.objectives().join(", ")),
        escape(&header.id),
        view.state(),
    );
    let facts: Vec<Vec<String>> = view
        .facts()
        .into_iter()
        .map(|(name, text)| vec![name.to_owned(), escape(&text)])
        .collect();
    out.push_str(&table(&["", ""], &facts));
    out.push_str("<div class=\"charts\">\n");
    for objective in 0..header.search.objective.0.len() {
        out.push_str(&over_time(view, objective));
    }
    out.push_str(&coordinates(view));
    out.push_str(&bars(view));
    out.push_str("</div>\n");
    out.push_str(&rungs(view));
    let (best, left_out) = view.best_table(LISTED, WIDE);
    out.push_str(&heading("<h3>Best trials</h3>", &heads(&best), &escaped(&best.rows)));
    if !left_out.is_empty() {
        let _ = writeln!(out, "<p class=\"dim\">Not shown: {}.</p>", escape(&left_out.join(", ")));
    }
    let slices = slices(view);
    if !slices.is_empty() {
        let _ = write!(
            out,
            "<h3>Objective by setting</h3>\n<div class=\"charts\">\n{slices}</div>\n"
        );
    }
    out.push_str(&all(view));
    out
}

fn heads(texts: &Texts) -> Vec<&str> {
    texts.head.iter().map(String::as_str).collect()
}

fn escaped(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter()
        .map(|row| row.iter().map(|cell| escape(cell)).collect())
        .collect()
}

/// The metric and the direction of an objective.
fn objective(view: &View, at: usize) -> (String, bool) {
    let objective = &view.record.header.search.objective.0[at];
    (String::from(objective.metric.clone()), objective.maximize)
}

/// The results in the order in which they came, without failures.
fn in_order(view: &View) -> Vec<(&TrialRow, &RungResult)> {
    let mut all: Vec<_> = view
        .trials
        .iter()
        .flat_map(|row| row.results.iter().map(move |result| (row, result)))
        .filter(|(_, result)| !result.score.is_failed())
        .collect();
    all.sort_by_key(|(_, result)| (result.time, result.job));
    all
}

/// The colour of a rung: the last is the first colour, whatever their number.
fn colour(view: &View, rung: usize) -> usize {
    // The second colour is the line's.
    match view.rungs.len().saturating_sub(rung + 1) {
        0 => 0,
        before => before + 1,
    }
}

/// Each result over the order in which they came, and the best so far at the last rung.
fn over_time(view: &View, at: usize) -> String {
    let (metric, maximize) = objective(view, at);
    let results = in_order(view);
    let n = results.len().saturating_sub(1).max(1) as f64;
    let (mut dots, mut best): (Vec<Dot>, Vec<(f64, f64)>) = Default::default();
    for (i, (row, result)) in results.iter().enumerate() {
        let Some(&value) = result.objectives.get(at) else {
            continue;
        };
        let x = i as f64 / n;
        let is_better = best
            .last()
            .is_none_or(|(_, best)| if maximize { value > *best } else { value < *best });
        if result.rung + 1 == view.rungs.len() && result.score.violation == 0.0 && is_better {
            best.push((x, value));
        }
        dots.push(Dot {
            x,
            y: value,
            colour: colour(view, result.rung),
            title: title(view, row, result),
        });
    }
    let first = results.first().map(|(_, result)| result.time);
    let ends = first.zip(results.last()).map(|(first, (_, last))| {
        let seconds = (last.time - first).num_milliseconds() as f64 / 1e3;
        vec![
            (0.0, "first result".to_owned()),
            (1.0, format!("{} later", text::duration(seconds))),
        ]
    });
    // The legend's order is that of the colours; the second is the line.
    let mut legend: Vec<String> = (0..view.rungs.len()).rev().map(|rung| view.rung(rung)).collect();
    if let [only] = legend.as_mut_slice() {
        *only = "trial".to_owned();
    }
    legend.insert(legend.len().min(1), "best so far".to_owned());
    Scatter {
        title: &format!("{metric} in the order of results"),
        height: 240.0,
        maximize: Some(maximize),
        dots,
        labels: ends.unwrap_or_default(),
        best,
        legend: &legend,
    }
    .html()
}

/// The words on a result.
fn title(view: &View, row: &TrialRow, result: &RungResult) -> String {
    let rung = if view.rungs.len() > 1 {
        format!(" at {}", view.rung(result.rung))
    } else {
        String::new()
    };
    let values: Vec<String> = result.objectives.iter().map(|value| text::figure(*value)).collect();
    format!(
        "trial {}{rung}: {}; {}",
        row.trial,
        values.join(", "),
        in_a_line(&row.settings, &view.short_names())
    )
}

/// Parallel coordinates of all trials: those that were stopped below the others, the best over them.
fn coordinates(view: &View) -> String {
    let over = &view.record.header.search.over;
    let (metric, _) = objective(view, 0);
    let short = view.short_names();
    let names: Vec<&str> = view
        .settings()
        .into_iter()
        .filter(|name| over.contains_key(*name))
        .collect();
    let axes: Vec<Axis<'_>> = names
        .iter()
        .map(|name| Axis {
            name: short.get(name).copied().unwrap_or(name),
            values: &over[*name].values,
        })
        .collect();
    let ranked = view.ranked();
    let best = ranked.len().div_ceil(10);
    let lines: Vec<Line<'_>> = ranked
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(place, row)| {
            let result = row.sound()?;
            Some(Line {
                values: names.iter().map(|name| row.settings.get(*name)).collect(),
                objective: result.objectives.first().copied()?,
                class: match (place < best, result.rung + 1 == view.rungs.len()) {
                    (true, _) => "c1",
                    (_, true) => "c0 faint",
                    _ => "grid",
                },
                title: title(view, row, result),
            })
        })
        .collect();
    parallel::drawing(&metric, &axes, &lines)
}

/// The importance of each setting as bars.
fn bars(view: &View) -> String {
    let Some(importance) = view.importance() else {
        return String::new();
    };
    let short = view.short_names();
    let mut parts: Vec<(&str, f64)> = importance
        .settings
        .iter()
        .map(|(name, share)| (short.get(name.as_str()).copied().unwrap_or(name), *share))
        .collect();
    parts.push(("several together", importance.interactions));
    const LEFT: f64 = 190.0;
    const ROW: f64 = 20.0;
    let title = "Importance: share of the objective's variance (functional ANOVA)";
    let label: Vec<String> = parts
        .iter()
        .map(|(name, share)| format!("{name} {:.0} %", share * 100.0))
        .collect();
    let mut out = figure(
        title,
        parts.len() as f64 * ROW + 6.0,
        "",
        &format!("{title}: {}", label.join(", ")),
    );
    for (at, (name, share)) in parts.iter().enumerate() {
        let y = at as f64 * ROW + 4.0;
        let width = share.clamp(0.0, 1.0) * (WIDTH - LEFT - 50.0);
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"f0\" x=\"{LEFT}\" \
            y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\"/><text x=\"{:.1}\" y=\"{1:.1}\">{:.0} %</text>",
            LEFT - 8.0,
            y + 11.0,
            escape(&cut(name, 26)),
            LEFT + width + 6.0,
            share * 100.0
        );
    }
    let _ = writeln!(
        out,
        "</svg><p class=\"legend\">Of {} at {}.</p></figure>",
        text::count(importance.trials, "trial"),
        view.rung(importance.rung)
    );
    out
}

/// The rungs, and whether stopping at them can be trusted.
fn rungs(view: &View) -> String {
    if view.rungs.len() < 2 {
        return String::new();
    }
    let texts = view.rung_table();
    format!(
        "<h3>Rungs</h3>\n{}<p class=\"dim\">{}</p>\n",
        table(&heads(&texts), &escaped(&texts.rows)),
        View::OF_RUNGS
    )
}

/// The objective over each setting.
fn slices(view: &View) -> String {
    let over = &view.record.header.search.over;
    let (_, maximize) = objective(view, 0);
    let short = view.short_names();
    let mut out = String::new();
    for name in view.settings().into_iter().take(SLICES) {
        let Some(domain) = over.get(name) else { continue };
        let dot = |row: &TrialRow| {
            let result = row.sound()?;
            Some(Dot {
                x: position(&domain.values, row.settings.get(name)?)?,
                y: result.objectives.first().copied()?,
                colour: colour(view, result.rung),
                // The settings stand in the other charts' words.
                title: format!("trial {}: {}", row.trial, View::objective(row)),
            })
        };
        out.push_str(
            &Scatter {
                title: short.get(name).copied().unwrap_or(name),
                height: 180.0,
                maximize: Some(maximize),
                dots: view.trials.iter().filter_map(dot).collect(),
                labels: labels(&domain.values),
                best: Vec::new(),
                legend: &[],
            }
            .html(),
        );
    }
    out
}

/// All trials: when each ended, where, and why.
fn all(view: &View) -> String {
    let short = view.short_names();
    let rows: Vec<Vec<String>> = view
        .trials
        .iter()
        .map(|row| {
            let error = row.results.last().and_then(|result| result.error.clone());
            vec![
                row.trial.to_string(),
                row.state.name().to_owned(),
                row.results
                    .last()
                    .map_or(String::new(), |result| view.rung(result.rung)),
                View::objective(row),
                text::duration(row.seconds),
                row.last
                    .map_or(String::new(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string()),
                error.unwrap_or_else(|| in_a_line(&row.settings, &short)),
            ]
        })
        .collect();
    let head = ["trial", "state", "rung", "objective", "time", "last result", "settings"];
    match rows.len() {
        0 => String::new(),
        n => collapsed(
            &format!("all {}", text::count(n, "trial")),
            &table(&head, &escaped(&rows)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_search::record::{Record, path};
    use runner_testkit::{SEARCH, write_search};

    fn view(run: Option<&str>) -> View {
        let home = tempfile::tempdir().unwrap();
        drop(write_search(home.path(), run));
        View::new(home.path(), Record::read(&path(home.path(), SEARCH)).unwrap().unwrap())
    }

    #[test]
    fn a_search_is_drawn_by_trials_rungs_and_settings() {
        let view = view(Some("run"));
        let html = section(&view);
        let count = |what: &str| html.matches(what).count();
        // 26 + 9 + 3 results; each trial again over each of the four settings.
        assert_eq!(count("<circle"), 38 + 4 * 26);
        assert_eq!(
            count("<path class=\"c1\""),
            1 + 3,
            "the best so far, and the best tenth"
        );
        assert_eq!(count("worse than the axis shows"), 5, "the best are not squashed");
        assert!(html.contains("<h3>Rungs</h3>") && html.contains("Spearman"));
        assert!(html.contains("the loss is not a number"), "what failed says why");
        assert!(!html.contains("<script"));
        // The best trial of the table is that of the record.
        let best = view.record.best().unwrap();
        assert_eq!(view.ranked()[0].trial, best);
        let (table, _) = view.best_table(10, 140);
        assert_eq!(table.rows[0][0], best.to_string());
        assert!(html.len() < 60_000, "{} bytes", html.len());
    }

    #[test]
    fn a_search_without_results_is_words() {
        let mut record = view(None).record;
        record.outcomes.clear();
        record.jobs.truncate(3);
        let html = section(&View::ended(record));
        assert!(html.contains("3 of 27 trials: 3 running"), "{html}");
        assert!(!html.contains("<svg"), "{html}");
    }
}
