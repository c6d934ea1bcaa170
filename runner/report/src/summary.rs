//! The stage kind `evaluate/summary`: the figures of agents and of their baselines side by side, for people.

mod rows;
#[cfg(test)]
mod tests;

use crate::comparison_table::{csv_line, markdown_line};
use crate::figures::{DECIDING, Unit};
use crate::finding::TABLE;
use crate::html::escape;
use cache::{ArtifactBuilder, canonical_json};
use rows::{Evaluations, Row, rows};
use runner_pipeline::suggest;
use serde_json::{Map, Number, Value, json};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use std::collections::BTreeSet;

stages_core::settings! {
    /// Configuration of `evaluate/summary`.
    pub struct SummaryConfig {
        /// The columns, by the names of metrics: `sharpe`, or `difference/utility` of `evaluate/compare`.
        /// `versus/utility` is the agent's utility less that of the baseline in the row. Empty: the first
        /// five that decide, of those there are.
        pub figures: Vec<String> = Vec::new(),
        /// Shows the baselines below the agents; a baseline with the same figures beside several agents is
        /// one row.
        pub baselines: bool = true,
    }
}

/// The stage kind `evaluate/summary`. It stands here, and not in `stages/evaluate`, since figures for people
/// are written here.
pub struct Summary;

/// The most columns that are chosen without `figures`.
const MOST_CHOSEN: usize = 5;

impl StageKind for Summary {
    type Config = SummaryConfig;
    const NAME: &'static str = "evaluate/summary";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "a table for people: agents and baselines by rows, figures with their \
        intervals by columns, as Markdown, CSV and HTML";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::named_lists("AGENT", PortType::Metrics).doc(
            "the metrics of an agent under its name, of one evaluation or of several: \
                `recurrent: \"evaluate[*]\"`, say. Several are one row, of means with standard deviations",
        )],
        outputs: &[OutputPort::new("metrics", PortType::Metrics).doc(
            "the figures by agent, with the table as `table.md`, `table.csv` and `table.html`, which is \
                without scripts and styles",
        )],
    };

    fn check(&self, config: &SummaryConfig, _: &PlanContext) -> Planned {
        let mut seen = BTreeSet::new();
        if let Some(twice) = config.figures.iter().find(|figure| !seen.insert(*figure)) {
            return Err(
                ConfigProblem::new("figures", format!("names `{twice}` twice")).hint("name each column once")
            );
        }
        Ok(Self::PORTS.provided())
    }

    /// Evaluations are of test data, unless they say otherwise.
    fn reads_test(&self, _: &SummaryConfig) -> bool {
        true
    }

    fn run(&self, config: &SummaryConfig, context: &Context) -> Result<Outputs, StageError> {
        let agents = Evaluations::of(&context.inputs);
        let figures = chosen(config, &agents)?;
        let rows = rows(&agents, &figures, config.baselines);
        let mut builder = ArtifactBuilder::new(
            &context.store,
            PortType::Metrics.name(),
            json!({ "summary": Map::from_iter(values(&rows, &figures)) }),
        );
        builder.bytes("metrics.jsonl", lines(&rows, &figures).as_bytes())?;
        let text = Text::of(&rows, &figures);
        for (name, text) in [
            (TABLE, text.markdown()),
            ("table.csv", csv(&rows, &figures)),
            ("table.html", text.html()),
        ] {
            builder.bytes(name, text.as_bytes())?;
        }
        let digest = builder.finish()?;
        for (name, value) in values(&rows, &figures) {
            if let Some(value) = value.as_f64() {
                context.metric(&name, 0, value);
            }
        }
        Ok(Outputs::from([("metrics".to_owned(), digest)]))
    }
}

/// The figures of the columns.
fn chosen(config: &SummaryConfig, agents: &[Evaluations<'_>]) -> Result<Vec<String>, StageError> {
    let known: BTreeSet<String> = agents.iter().flat_map(Evaluations::figures).collect();
    let names = || known.iter().map(String::as_str);
    if config.figures.is_empty() {
        let deciding = DECIDING.iter().filter(|figure| known.contains(**figure));
        let figures: Vec<String> = deciding.take(MOST_CHOSEN).map(|figure| (*figure).to_owned()).collect();
        StageError::new("the metrics have none of the figures that decide")
            .hint(format!(
                "name the columns in `figures`: {}",
                suggest("", "figures", names())
            ))
            .when(figures.is_empty())?;
        return Ok(figures);
    }
    for figure in &config.figures {
        StageError::new(format!("`figures`: no agent has a figure `{figure}`"))
            .hint(suggest(figure, "figures", names()))
            .when(!known.contains(figure))?;
    }
    Ok(config.figures.clone())
}

/// The figures of all rows under the names of metrics, those that are finite.
fn values(rows: &[Row], figures: &[String]) -> impl Iterator<Item = (String, Value)> {
    rows.iter().flat_map(move |row| {
        row.cells.iter().zip(figures).flat_map(move |(cell, figure)| {
            let name = format!("{}{}/{figure}", row.role.prefix(), row.name);
            let all = [("", cell.value)].into_iter().chain(cell.beside());
            all.filter_map(move |(suffix, value)| {
                Some((format!("{name}{suffix}"), Number::from_f64(value)?.into()))
            })
        })
    })
}

fn lines(rows: &[Row], figures: &[String]) -> String {
    let line = |(name, value)| canonical_json(&json!({ "name": name, "step": 0, "value": value })) + "\n";
    values(rows, figures).map(line).collect()
}

/// The table as CSV in full precision, with the columns of deviations and intervals that there are.
fn csv(rows: &[Row], figures: &[String]) -> String {
    let mut lines = vec![["name", "role", "n"].map(str::to_owned).to_vec()];
    lines.extend(
        rows.iter()
            .map(|row| vec![row.name.clone(), row.role.name().to_owned(), row.count()]),
    );
    for (column, figure) in figures.iter().enumerate() {
        let cells = || rows.iter().map(|row| &row.cells[column]);
        let mut add = |name: String, values: Vec<f64>| {
            let shown = |value: f64| {
                if value.is_finite() {
                    value.to_string()
                } else {
                    String::new()
                }
            };
            lines[0].push(name);
            for (line, value) in lines[1..].iter_mut().zip(values) {
                line.push(shown(value));
            }
        };
        add(figure.clone(), cells().map(|cell| cell.value).collect());
        for i in 0..3 {
            let values: Vec<f64> = cells().map(|cell| cell.beside()[i].1).collect();
            if values.iter().any(|value| value.is_finite()) {
                add(format!("{figure}{}", rows[0].cells[column].beside()[i].0), values);
            }
        }
    }
    lines.iter().map(|line| csv_line(line)).collect()
}

/// The table as text for people: its head, its lines, and the sentences below it.
struct Text {
    head: Vec<String>,
    lines: Vec<Vec<String>>,
    notes: Vec<&'static str>,
}

impl Text {
    fn of(rows: &[Row], figures: &[String]) -> Self {
        let is_repeated = rows.iter().any(|row| row.n > 1);
        let mut head = vec![String::new()];
        head.extend(is_repeated.then(|| "n".to_owned()));
        head.extend(figures.iter().map(|figure| heading(figure)));
        let line = |row: &Row| {
            let mut line = vec![row.name.replace('_', " ")];
            line.extend(is_repeated.then(|| row.count()));
            let cells = row.cells.iter().zip(figures);
            line.extend(cells.map(|(cell, figure)| cell.shown(Unit::of(figure))));
            line
        };
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let notes = [
            (
                cells().any(|cell| cell.sd.is_finite()),
                "Mean ± standard deviation over n evaluations.",
            ),
            (cells().any(|cell| cell.low.is_finite()), "In brackets: 95 % intervals."),
        ];
        Self {
            head,
            lines: rows.iter().map(line).collect(),
            notes: notes.into_iter().filter_map(|(is, note)| is.then_some(note)).collect(),
        }
    }

    fn markdown(&self) -> String {
        let mut out = markdown_line(&self.head);
        out.push_str(&format!("|{}\n", " --- |".repeat(self.head.len())));
        out.extend(self.lines.iter().map(|line| markdown_line(line)));
        if !self.notes.is_empty() {
            out.push_str(&format!("\n{}\n", self.notes.join(" ")));
        }
        out
    }

    /// A fragment without classes, since its bytes are an artifact's: the style of reports may change.
    fn html(&self) -> String {
        let head: String = self
            .head
            .iter()
            .map(|cell| format!("<th scope=\"col\">{}</th>", escape(cell)))
            .collect();
        let mut out = format!("<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
        for line in &self.lines {
            let cells = line[1..].iter().map(|cell| format!("<td>{}</td>", escape(cell)));
            let cells: String = cells.collect();
            out.push_str(&format!(
                "<tr><th scope=\"row\">{}</th>{cells}</tr>\n",
                escape(&line[0])
            ));
        }
        out.push_str("</tbody>\n</table>\n");
        if !self.notes.is_empty() {
            out.push_str(&format!("<p>{}</p>\n", escape(&self.notes.join(" "))));
        }
        out
    }
}

/// The heading of a column: the name as it was given, so that a glossary's new wording changes no artifact.
fn heading(figure: &str) -> String {
    let words = |name: &str| name.replace('_', " ");
    match figure.strip_prefix("versus/").filter(|less| !less.contains('/')) {
        Some(less) => format!("agent less it: {}", words(less)),
        None => words(figure),
    }
}
