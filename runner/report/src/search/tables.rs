//! Tables of a search, as texts that the terminal and the pages show alike.

use super::scale::plain;
use super::view::{View, metrics};
use runner_engine::{row, text};
use runner_search::trials::TrialRow;

/// A table of texts.
pub struct Texts {
    /// The titles of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The columns that are right-aligned.
    pub right: Vec<usize>,
}

impl Texts {
    /// The table as text.
    pub fn text(&self) -> String {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        text::table(&head, &self.rows, &self.right)
    }
}

impl View {
    /// The words below the table of rungs.
    pub const OF_RUNGS: &str = "The rank correlation (Spearman) is between a rung and the end, of the trials that \
        reached the end. They did well at the rung, so that it says less than that of all trials would. The last \
        column is the rank at the rung of the trial that is best at the end.";

    /// The rungs: trials, those that went on, and how well the order there foretells that at the end.
    pub fn rung_table(&self) -> Texts {
        let cell = |value: &Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let rows = self.rungs.iter().map(|rung| {
            let is_last = rung.rung + 1 == self.rungs.len();
            let correlations = rung.correlations.iter().map(cell).collect::<Vec<_>>().join(" / ");
            let best = rung.best_rank.map(|rank| {
                let kept = match rung.best_kept {
                    Some(true) => ", kept",
                    Some(false) => ", stopped",
                    None => "",
                };
                format!("{rank} of {}{kept}", rung.trials - rung.failed)
            });
            let below = |text: String| if is_last { String::new() } else { text };
            row![
                self.rung(rung.rung),
                rung.trials,
                below(rung.promoted.to_string()),
                below((rung.trials - rung.failed).saturating_sub(rung.promoted).to_string()),
                rung.failed,
                below(correlations),
                below(rung.pairs.to_string()),
                below(best.unwrap_or_else(|| "-".to_owned())),
            ]
        });
        let head = [
            "rung",
            "trials",
            "went on",
            "stopped",
            "failed",
            "rank correlation",
            "of trials",
            "rank of the best",
        ];
        Texts {
            head: head.map(str::to_owned).into(),
            rows: rows.collect(),
            right: (0..7).collect(),
        }
    }

    /// The best `most` trials with a column for each setting, the most important first, as many as fit into
    /// `width` characters; and the settings that do not.
    pub fn best_table(&self, most: usize, width: usize) -> (Texts, Vec<&str>) {
        let short = self.short_names();
        let ranked = self.ranked();
        let rows: Vec<&TrialRow> = ranked.into_iter().take(most).collect();
        let seeds = self.record.header.search.seeds.count > 1;
        let mut head = vec!["trial".to_owned(), "rung".to_owned(), "objective".to_owned()];
        head.extend(seeds.then(|| "seeds".to_owned()));
        let mut cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let mut cells = row![
                    row.trial,
                    row.sound().map(|result| self.rung(result.rung)),
                    Self::objective(row)
                ];
                cells.extend(seeds.then(|| spread(row)));
                cells
            })
            .collect();
        let right = (0..head.len()).collect();
        let wide = |head: &str, column: &mut dyn Iterator<Item = usize>| {
            head.chars().count().max(column.max().unwrap_or(0))
        };
        let mut used: usize = (0..head.len())
            .map(|at| wide(&head[at], &mut cells.iter().map(|row| row[at].chars().count())) + 2)
            .sum();
        let mut left_out = Vec::new();
        for name in self.settings() {
            let title = short.get(name).copied().unwrap_or(name);
            let column: Vec<String> = rows
                .iter()
                .map(|row| row.settings.get(name).map_or("-".to_owned(), plain))
                .collect();
            let needed = wide(title, &mut column.iter().map(|cell| cell.chars().count())) + 2;
            if used + needed > width + 2 {
                left_out.push(title);
                continue;
            }
            used += needed;
            head.push(title.to_owned());
            for (row, cell) in cells.iter_mut().zip(column) {
                row.push(cell);
            }
        }
        let table = Texts {
            head,
            rows: cells,
            right,
        };
        (table, left_out)
    }

    /// The searches of a home, a row for each.
    pub fn list(views: &[Self]) -> Texts {
        let rows = views.iter().map(|view| {
            let header = &view.record.header;
            let best = view.best();
            let best = best.first();
            row![
                header.id,
                view.state(),
                format!("{} of {}", view.trials.len(), header.search.trials()),
                metrics(&header.search).join(", "),
                best.map(|row| Self::objective(row)),
                view.record.latest().format("%Y-%m-%d %H:%M").to_string(),
            ]
        });
        let head = ["search", "state", "trials", "objective", "best", "last result (UTC)"];
        Texts {
            head: head.map(str::to_owned).into(),
            rows: rows.collect(),
            right: vec![2, 4],
        }
    }
}

/// The lowest and the highest of the seeds of a trial's last result, of its first objective.
fn spread(row: &TrialRow) -> String {
    let Some(result) = row.sound() else {
        return String::new();
    };
    let first = || result.seeds.iter().filter_map(|seed| seed.first().copied());
    let (low, high) = (
        first().fold(f64::INFINITY, f64::min),
        first().fold(f64::NEG_INFINITY, f64::max),
    );
    format!("{} to {}", text::figure(low), text::figure(high))
}
