//! The table of a study as Markdown.

use super::difference::Interval;
use super::markets::Market;
use super::{Found, Row, StudyConfig};
use crate::output::markdown as table;

/// The probability by chance below which a difference counts.
const CHANCE: f64 = 0.05;

pub(super) fn markdown(config: &StudyConfig, found: &Found, markets: &[Market]) -> String {
    let first = config.agent.as_str();
    let mut out = table(
        &["", "utility", "Sharpe", "seeds", "blind", "of the filter"].map(String::from),
        &rows(found),
    );
    let compared: Vec<&Row> = found
        .rows()
        .map(|(_, row)| row)
        .filter(|row| row.less.is_some())
        .collect();
    let kinds: Vec<&str> = compared
        .first()
        .and_then(|row| row.less.as_ref())
        .map(|less| less.kinds.iter().map(|(kind, _)| *kind).collect())
        .unwrap_or_default();
    let mut head = vec![format!("{first} less"), "utility".to_owned(), "**widest**".to_owned()];
    head.extend(kinds.iter().map(|kind| kind.replace('_', " ")));
    head.extend([format!("p of {}", compared.len()), first.to_owned()]);
    let lines: Vec<Vec<String>> = compared.iter().map(|row| line(row)).collect();
    out.push('\n');
    out.push_str(&table(&head, &lines));
    let worlds: usize = markets.iter().map(|market| market.common.worlds).sum();
    out.push_str(&format!(
        "\nUtility a year, mean of {} and {worlds} test worlds. In brackets: 95 % intervals; the widest holds all others. \
        p by Holm's correction; below {CHANCE} the agent is better or worse.\n",
        match markets.len() {
            1 => "one market".to_owned(),
            several => format!("{several} markets"),
        },
    ));
    if markets.len() == 1 {
        out.push_str(
            "Nothing is said of other markets, on whose worlds the agents were trained anew: that takes \
            several market seeds.\n",
        );
    }
    out
}

/// The agents and the rules with their figures.
fn rows(found: &Found) -> Vec<Vec<String>> {
    let of = |(role, row): (&str, &Row)| {
        let is_agent = role == "agent";
        let only = |text: String| if is_agent { text } else { String::new() };
        let share = found
            .share_of_filter(row)
            .map(|share| format!("{:.0} %", 100.0 * share));
        vec![
            row.name.clone(),
            format!("{:.3}", row.utility),
            format!("{:.2}", row.sharpe),
            only(row.seeds.to_string()),
            row.blind.map(|blind| blind.to_string()).unwrap_or_default(),
            share.unwrap_or_default(),
        ]
    };
    found.rows().map(of).collect()
}

/// The difference of the first agent from another strategy.
fn line(row: &Row) -> Vec<String> {
    let shown = |of: &Interval| format!("[{:+.3}, {:+.3}]", of.low, of.high);
    let mut cells = vec![row.name.clone()];
    if let Some(less) = &row.less {
        cells.extend([format!("{:+.3}", less.value), format!("**{}**", shown(&less.widest))]);
        cells.extend(less.kinds.iter().map(|(_, interval)| shown(interval)));
        let said = match row.p < CHANCE {
            true if less.value > 0.0 => "better",
            true => "worse",
            false => "no different",
        };
        cells.extend([format!("{:.3}", row.p), said.to_owned()]);
    }
    cells
}
