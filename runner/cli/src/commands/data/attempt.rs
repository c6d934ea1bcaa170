//! Stages for files, tried on them: as recognised or proposed, with answers to what the file does not say,
//! with the ways out that an error names, or as lenient as the rules allow.

use super::read::{Looked, Read, ReadArgs, path_of};
use super::trial::{Scratch, parsed};
use datasets::layout::{Table, Unit};
use runner_engine::Failure;
use serde_json::Value;
use stages_core::StageError;
use stages_ingest::name_of_nobody;
use stages_ingest::propose::{CHOOSE, LEFT_OUT, is_open, scalar};
use std::collections::BTreeMap;

/// The settings below which a stage reads what its rules would refuse.
const LENIENT: [&str; 2] = ["on_bad_rows: keep", "max_dropped: 1.0"];

/// The width of comments.
const WIDTH: usize = 100;

/// A stage for files, and what became of it.
#[derive(Default)]
pub(super) struct Attempt {
    /// The stage's name, such as `bars`.
    pub name: String,
    /// The stage kind.
    pub kind: String,
    /// The table of its layout; `None` for stages without layouts.
    pub table: Option<Table>,
    /// The reason why the files are taken for that.
    pub why: String,
    /// True if no layout is known, and the columns are mapped by their names and values.
    pub is_proposed: bool,
    /// Our required columns that were not found.
    pub missing: Vec<&'static str>,
    /// Points that the user should check.
    pub doubts: Vec<String>,
    /// The stage, with findings as comments at their place.
    pub yaml: String,
    /// The table that the stage made of the files.
    pub read: Option<Read>,
    /// The error by which the stage is refused as it stands.
    pub finding: Option<StageError>,
    /// The lines under which `read` was made, where the stage is refused as it stands.
    pub under: Vec<String>,
    /// The warnings of the reading.
    pub warnings: Vec<String>,
}

impl Attempt {
    fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// A stage for files that nothing reads.
    pub(super) fn refused(name: &str, kind: &str, error: StageError) -> Self {
        Self {
            why: "no reader accepts the files".to_owned(),
            finding: Some(error),
            ..Self::new(name, kind)
        }
    }

    /// Returns whether the stage runs as it stands, or when one of its comments is made a setting.
    pub(super) fn is_usable(&self) -> bool {
        self.read.is_some() && (self.finding.is_none() || self.yaml.contains(CHOOSE))
    }
}

/// Attempts to read files, and returns the first attempt that succeeds, or the best one; `None` for files
/// that no stage is proposed for.
pub(super) fn attempt(
    scratch: &Scratch,
    args: &ReadArgs,
    looked: &Looked,
) -> Result<Option<Attempt>, Failure> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for candidate in candidates(args, looked)? {
        // Another kind of stage is proposed where no reader accepts the files as the first.
        let is_other = attempts.first().is_some_and(|first| first.kind != candidate.kind);
        let is_enough = |attempt: &Attempt| attempt.read.is_some() || !questions(&attempt.yaml).is_empty();
        if is_other && attempts.iter().any(is_enough) {
            break;
        }
        let tried = tried(scratch, args, candidate);
        if tried.read.is_some() && tried.finding.is_none() {
            return Ok(Some(tried));
        }
        attempts.push(tried);
    }
    let rank = |attempt: &Attempt| (attempt.is_usable(), attempt.read.is_some());
    let best = (0..attempts.len()).rev().max_by_key(|at| rank(&attempts[*at]));
    Ok(best.map(|at| attempts.swap_remove(at)))
}

/// The stages to try, the best first.
fn candidates(args: &ReadArgs, looked: &Looked) -> Result<Vec<Attempt>, Failure> {
    let known = |table: Table, why: String| Attempt {
        table: Some(table),
        why,
        yaml: super::inspect::stage_yaml(args, table),
        ..Attempt::new(table.name(), table.stage_kind())
    };
    if args.layout.as_deref().is_some_and(|name| name != "auto") {
        let (table, why) = looked.table(args)?;
        return Ok(vec![known(table, why)]);
    }
    let wanted = |kind: &str| args.table.is_none_or(|table| table.stage_kind() == kind);
    let mut all: Vec<Attempt> = Vec::new();
    let tables = looked.first.known();
    for (table, found) in &tables {
        let mut attempt = known(*table, found.why.clone());
        let others = tables.iter().filter(|(other, _)| other != table);
        let others: Vec<String> = others
            .map(|(other, found)| format!("`{}` of layout `{}`", other.stage_kind(), found.layout.name))
            .collect();
        if !others.is_empty() && args.layout.is_none() && args.table.is_none() {
            let name = &found.layout.name;
            attempt.yaml += &format!(
                "      # {}, or other data? {} reads them, too (remove `{CHOOSE}` from one line)\n      \
                 {CHOOSE}layout: {name}   # {}\n",
                table.name(),
                others.join(", "),
                found.layout.about
            );
        }
        all.push(attempt);
    }
    // A layout of both orders of day and month takes the first one that fits: a question comes before it.
    let is_open = tables.iter().any(|(_, found)| is_open(&found.layout.dates));
    let first = looked.first.proposals.first();
    let is_asked = is_open && first.is_some_and(|proposal| !proposal.questions.is_empty());
    for proposal in &looked.first.proposals {
        let symbol = args
            .symbol
            .iter()
            .filter(|_| matches!(proposal.table(), Some(Table::Chain | Table::Bars)));
        let settings: Vec<String> = symbol.map(|symbol| format!("symbol: {}", scalar(symbol))).collect();
        all.push(Attempt {
            table: proposal.table(),
            why: "by the names and values of its columns".to_owned(),
            is_proposed: true,
            missing: proposal.missing.clone(),
            doubts: proposal.doubts.clone(),
            yaml: proposal.yaml(&path_of(&args.paths), &settings),
            ..Attempt::new(proposal.name, proposal.kind)
        });
    }
    if is_asked {
        all.retain(|attempt| attempt.is_proposed);
    }
    // Layouts that fit, but not for certain, are ways out.
    for (table, candidates, found) in &looked.first.tables {
        let Some(weak) = candidates.first().filter(|candidate| candidate.fits && found.is_err()) else {
            continue;
        };
        let line = format!("layout: {}", weak.layout.name);
        let mut attempt = known(*table, weak.reason());
        let lines = format!(
            "      # {}\n      {CHOOSE}{line}   # if that is right\n",
            weak.layout.about
        );
        attempt.yaml.push_str(&lines);
        all.push(attempt);
    }
    all.retain(|attempt| wanted(&attempt.kind));
    Ok(all)
}

/// The attempt after its trial.
fn tried(scratch: &Scratch, args: &ReadArgs, mut attempt: Attempt) -> Attempt {
    let error = match scratch.read(&attempt.yaml) {
        Ok(read) => {
            attempt.take(read);
            of_symbol(scratch, args, &mut attempt);
            state_symbol(scratch, args, &mut attempt);
            state_assumptions(&mut attempt);
            return attempt;
        }
        Err(error) => error,
    };
    attempt.finding = Some(error.clone());
    // A question is answered with its first choice.
    if let Some((answered, chosen)) = answers(&attempt.yaml) {
        let mut ran = scratch.read(&answered);
        // The first days of months are sessions of no exchange.
        if let Err(error) = &ran
            && error.message.starts_with("the calendar `")
            && !attempt.yaml.contains("\n      calendar: ")
        {
            let line = "      calendar: none   # the dates are sessions of no one exchange\n";
            ran = scratch.read(&(answered + line));
            if ran.is_ok() {
                attempt.yaml += line;
            }
        }
        if let Ok(read) = ran {
            attempt.under = chosen;
            attempt.take(read);
            return attempt;
        }
    }
    let mut ways: Vec<String> = Vec::new();
    let settings = parsed(&attempt.yaml).ok();
    for fragment in fragments(&error) {
        if let Some((yaml, line)) = with_line(&attempt.yaml, settings.as_ref(), &fragment)
            && let Ok(read) = scratch.read(&yaml)
        {
            if attempt.read.is_none() {
                attempt.under = vec![line.trim().to_owned()];
                attempt.take(read);
            }
            ways.push(line);
        }
    }
    attempt.yaml = with_finding(&attempt.yaml, &error, &ways);
    if attempt.read.is_none() {
        // What the rules refuse is still shown.
        let lenient = LENIENT.map(|line| format!("      {line}\n")).concat();
        let yaml = answered(&attempt.yaml).unwrap_or_else(|| attempt.yaml.clone());
        if let Ok(read) = scratch.read(&(yaml + &lenient)) {
            attempt.under = LENIENT.map(str::to_owned).into();
            attempt.take(read);
        }
    }
    attempt
}

impl Attempt {
    fn take(&mut self, (read, warnings): (Read, Vec<String>)) {
        self.read = Some(read);
        self.warnings = warnings;
    }
}

/// Takes the named symbol alone where the files name several.
fn of_symbol(scratch: &Scratch, args: &ReadArgs, attempt: &mut Attempt) {
    let (Some(symbol), Some(read)) = (&args.symbol, &attempt.read) else {
        return;
    };
    let symbols = read.symbols();
    let is_asked = matches!(attempt.table, Some(Table::Chain | Table::Bars));
    if !is_asked || symbols.is_empty() || symbols == [symbol.clone()] {
        return;
    }
    if !symbols.contains(symbol) {
        let error = StageError::new(format!(
            "the files name other symbols than `{symbol}`: {}",
            symbols.join(", ")
        ))
        .hint("`--symbol` takes one of these, or leave it out to read all of them");
        attempt.yaml = with_finding(&attempt.yaml, &error, &[]);
        attempt.finding = Some(error);
        return;
    }
    let line = format!("      symbol: {}\n", scalar(symbol));
    let yaml = attempt
        .yaml
        .replace(&line, &format!("      symbols: [{}]\n", scalar(symbol)));
    if let Ok(read) = scratch.read(&yaml) {
        attempt.yaml = yaml;
        attempt.take(read);
    }
}

/// Adds the symbol of bars that no column names, and the file's name by a general word alone: files of other
/// names may follow.
fn state_symbol(scratch: &Scratch, args: &ReadArgs, attempt: &mut Attempt) {
    let (Some(Table::Bars), Some(read), [path]) = (attempt.table, &attempt.read, args.paths.as_slice())
    else {
        return;
    };
    let Some(symbol) = name_of_nobody(path).filter(|name| read.symbols() == [*name]) else {
        return;
    };
    let line = format!("      symbol: {}   # no column names it\n", scalar(symbol));
    let yaml = attempt.yaml.clone() + &line;
    // A setting that names a column is that column.
    if let Ok((again, _)) = scratch.read(&yaml)
        && again.symbols() == read.symbols()
    {
        attempt.yaml = yaml;
    }
}

/// Adds the facts that no file, layout or name states, as comments to be made settings.
fn state_assumptions(attempt: &mut Attempt) {
    let (Some(Table::Bars | Table::Rates), Some(read)) = (attempt.table, &attempt.read) else {
        return;
    };
    let meta = &read.artifact.meta;
    let is_plain = meta["layout"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == "plain"));
    let mut lines = String::new();
    for key in ["currency", "calendar", "adjusted"] {
        let is_rates = attempt.table == Some(Table::Rates);
        let fact = &meta["facts"][key];
        let is_assumed = match fact["origin"].as_str() {
            Some(origin) => matches!(origin, "assumed" | "found"),
            None => attempt.is_proposed || is_plain,
        };
        let value = match (&fact["value"], &meta[key]) {
            (Value::String(value), _) | (_, Value::String(value)) => value.as_str(),
            _ if key == "adjusted" && !is_rates => "none",
            _ => continue,
        };
        if is_assumed && !attempt.yaml.contains(&format!("\n      {key}: ")) {
            let choices = if key == "adjusted" {
                "   # or splits, splits_and_dividends"
            } else {
                ""
            };
            lines += &format!("      # {key}: {}{choices}\n", scalar(value));
        }
    }
    if attempt.table == Some(Table::Bars) && is_adjusted_for_splits_alone(meta) {
        attempt.yaml += "      # `adjusted_close` is adjusted for splits alone: dividends are not in it\n";
    }
    if !lines.is_empty() {
        attempt.yaml += "      # Assumed; correct it if it is wrong, and remove the mark:\n";
        attempt.yaml += &lines;
    }
}

/// Returns whether the adjusted closes of bars are closes that a layout divides by a factor of splits.
fn is_adjusted_for_splits_alone(meta: &Value) -> bool {
    let names = meta["layout"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut columns = names
        .filter_map(|name| datasets::layout::find(Table::Bars, name))
        .flat_map(|layout| &layout.columns);
    columns.any(|column| column.ours == "adjusted_close" && matches!(column.unit, Unit::DividedBy(_)))
}

/// The text with the first line of each question as a setting, and these lines; `None` if it asks nothing.
fn answers(yaml: &str) -> Option<(String, Vec<String>)> {
    let mut is_after = false;
    let mut lines = Vec::new();
    let mut out = String::with_capacity(yaml.len());
    for line in yaml.lines() {
        let choice = line.trim_start().strip_prefix(CHOOSE);
        match choice.filter(|_| !is_after) {
            Some(choice) => {
                out.push_str(&line.replacen(CHOOSE, "", 1));
                lines.push(choice.to_owned());
            }
            None => out.push_str(line),
        }
        out.push('\n');
        is_after = choice.is_some();
    }
    (!lines.is_empty()).then_some((out, lines))
}

/// The text with the first line of each question as a setting; `None` if it asks nothing.
pub(super) fn answered(yaml: &str) -> Option<String> {
    answers(yaml).map(|(answered, _)| answered)
}

/// The questions that a text asks: the comments above the lines to choose from, without the marks.
pub(super) fn questions(yaml: &str) -> Vec<String> {
    let lines: Vec<&str> = yaml.lines().map(str::trim_start).collect();
    let mark = format!(" (remove `{CHOOSE}`");
    let asked = lines.iter().filter_map(|line| line.split_once(&mark));
    asked
        .map(|(text, _)| text.trim_start_matches("# ").to_owned())
        .collect()
}

/// The lines that name columns that are not read, without the marks.
pub(super) fn left_out(yaml: &str) -> Vec<&str> {
    let lines = yaml
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with(LEFT_OUT));
    lines.map(|line| line.trim_start_matches("# ")).collect()
}

/// The settings that an error names: texts in backquotes that are a key with a value.
fn fragments(error: &StageError) -> Vec<String> {
    let text = format!("{} {}", error.hint.as_deref().unwrap_or_default(), error.message);
    let quoted = text.split('`').skip(1).step_by(2);
    let is_setting = |text: &&str| {
        let key = text.split_once(": ").map_or("", |(key, _)| key);
        // Rows of one key are often those of several symbols.
        !key.is_empty()
            && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            && !text.contains('…')
            && !text.contains("duplicate_key")
    };
    let mut found: Vec<String> = quoted.filter(is_setting).map(str::to_owned).collect();
    found.dedup();
    found
}

/// The stage with a setting as a line of its own, and the line; `None` where it has that setting.
fn with_line(
    yaml: &str,
    settings: Option<&BTreeMap<String, Value>>,
    fragment: &str,
) -> Option<(String, String)> {
    const LAYOUT: &str = "      layout:\n";
    let (key, value) = fragment.split_once(": ")?;
    let with = settings?.values().next()?.get("with")?.clone();
    if key == "layout" && yaml.contains(LAYOUT) {
        // One more key of the layout.
        let inner: BTreeMap<String, Value> = parsed(value).ok()?;
        let inner: Vec<_> = inner.iter().filter(|(key, _)| key.as_str() != "like").collect();
        let [(inner_key, inner_value)] = inner.as_slice() else {
            return None;
        };
        let has = with["layout"].get(inner_key.as_str()).is_some();
        let line = format!("        {inner_key}: {inner_value}");
        return (!has).then(|| (yaml.replacen(LAYOUT, &format!("{LAYOUT}{line}\n"), 1), line));
    }
    let line = format!("      {key}: {value}");
    let has = with.get(key).is_some();
    (!has).then(|| (format!("{yaml}{line}\n"), line))
}

/// A text as lines of comment.
pub(super) fn comment(indent: &str, text: &str) -> String {
    let mut out = String::new();
    let mut lead = "# ";
    for part in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut line = String::new();
        for word in part.split_whitespace() {
            if !line.is_empty() && line.chars().count() + word.chars().count() > WIDTH {
                out.push_str(&format!("{indent}{lead}{line}\n"));
                lead = "#   ";
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push_str(&format!("{indent}{lead}{line}\n"));
        lead = "#   ";
    }
    out
}

/// An error, and the hint, as lines of comment.
pub(super) fn finding(indent: &str, error: &StageError) -> String {
    let mut text = comment(indent, &format!("finding: {}", error.message));
    if let Some(hint) = &error.hint {
        text += &comment(indent, &format!("hint: {hint}"));
    }
    text
}

/// The stage with an error as a comment at its place, and the lines that make it run.
pub(super) fn with_finding(yaml: &str, error: &StageError, ways: &[String]) -> String {
    let place = error
        .message
        .split_once("column `")
        .and_then(|(_, rest)| rest.split('`').next());
    let is_place = |line: &str| {
        place.is_some_and(|name| {
            line.trim_end().ends_with(&format!(": {}", scalar(name))) && line.starts_with("       ")
        })
    };
    let mut out = String::new();
    let mut is_said = false;
    for line in yaml.lines() {
        out.push_str(line);
        out.push('\n');
        if is_place(line) && !is_said {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            out += &finding(&indent, error);
            is_said = true;
        }
    }
    if !is_said {
        out += &finding("      ", error);
    }
    for way in ways {
        let at = way.len() - way.trim_start().len();
        let (indent, setting) = way.split_at(at);
        let line = format!("{indent}{CHOOSE}{setting}   # reads the file\n");
        match indent.len() > 6 {
            true => out = out.replacen("      layout:\n", &format!("      layout:\n{line}"), 1),
            false => out += &line,
        }
    }
    out
}
