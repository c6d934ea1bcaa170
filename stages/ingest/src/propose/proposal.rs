//! A proposed stage, and its text in a pipeline file.

use datasets::layout::Table;
use std::fmt::Write as _;

/// A proposed stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The name of the stage: `bars`, `factors`.
    pub name: &'static str,
    /// The stage kind.
    pub kind: &'static str,
    /// The columns that are read: our name, the file's name, and the reason.
    pub columns: Vec<(String, String, &'static str)>,
    /// Settings of the stage beside the columns, a line each.
    pub(super) settings: Vec<String>,
    /// Keys of the layout beside the columns, a line each.
    pub(super) layout: Vec<String>,
    /// Questions that the file leaves open.
    pub questions: Vec<Question>,
    /// Questions about columns, which lines below `columns:` answer.
    pub(super) of_columns: Vec<Question>,
    /// Our required columns that were not found.
    pub missing: Vec<&'static str>,
    /// Points that the user should check, in sentences.
    pub doubts: Vec<String>,
    /// The columns with values that are not read.
    pub left_out: Vec<String>,
}

/// A question about a file, with the lines that answer it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The question.
    pub asked: String,
    /// Further lines below it.
    pub notes: Vec<String>,
    /// The lines to choose from, each with its meaning: keys of the layout where the stage has one, otherwise
    /// settings of the stage.
    pub choices: Vec<(String, String)>,
}

/// The beginning of a line of a proposal that answers a question.
pub const CHOOSE: &str = "# choose: ";

/// The beginning of a line of a proposal that names the columns that are not read.
pub const LEFT_OUT: &str = "# left out: ";

impl Proposal {
    pub(super) fn new(name: &'static str, kind: &'static str) -> Self {
        Self {
            name,
            kind,
            ..Self::default()
        }
    }

    /// The table that a layout of the stage fills; `None` for stages without a layout.
    pub fn table(&self) -> Option<Table> {
        Table::ALL.iter().copied().find(|table| table.stage_kind() == self.kind)
    }

    /// The YAML of a stage that reads the file at `path`, ready to paste into a pipeline file. `settings` are
    /// further lines below `with:`.
    pub fn yaml(&self, path: &str, settings: &[String]) -> String {
        let mut out = format!(
            "  {}:\n    uses: {}\n    with:\n      path: {path}\n",
            self.name, self.kind
        );
        let is_named = |line: &&String| {
            let key = line.split(':').next().unwrap_or_default();
            !settings.iter().any(|given| given.split(':').next() == Some(key))
        };
        for line in settings.iter().chain(self.settings.iter().filter(is_named)) {
            let _ = writeln!(out, "      {line}");
        }
        let ask = |out: &mut String, indent: &str, questions: &[Question]| {
            for question in questions {
                let lines = match question.choices.len() {
                    1 => "the line",
                    _ => "one line",
                };
                let _ = writeln!(out, "{indent}# {} (remove `{CHOOSE}` from {lines})", question.asked);
                for note in &question.notes {
                    let _ = writeln!(out, "{indent}# {note}");
                }
                for (line, meaning) in &question.choices {
                    let _ = writeln!(out, "{indent}{CHOOSE}{line}   # {meaning}");
                }
            }
        };
        let has_layout = self.table().is_some();
        if !has_layout {
            ask(&mut out, "      ", &self.questions);
        }
        if !self.left_out.is_empty() {
            let _ = writeln!(out, "      {LEFT_OUT}{}", self.left_out.join(", "));
        }
        let indent = if has_layout { "        " } else { "      " };
        if has_layout {
            out.push_str("      layout:\n");
            for line in &self.layout {
                let _ = writeln!(out, "{indent}{line}");
            }
            ask(&mut out, indent, &self.questions);
        } else if self.kind != "ingest/corporate_actions" {
            // Tables of numbers have their columns in the settings.
            return out;
        }
        let _ = writeln!(out, "{indent}columns:");
        for (ours, theirs, why) in &self.columns {
            let note = match *why {
                "its name" => String::new(),
                why if theirs == "*" => format!("  # {why}"),
                why => format!("  # by {why}"),
            };
            let _ = writeln!(out, "{indent}  {ours}: {}{note}", scalar(theirs));
        }
        ask(&mut out, &format!("{indent}  "), &self.of_columns);
        for ours in &self.missing {
            let _ = writeln!(out, "{indent}  # {ours}: <not found: the name in the header>");
        }
        out
    }
}

/// Quotes a text as a YAML scalar if necessary.
pub fn scalar(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "_. ".contains(c))
        && text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !text.ends_with(' ')
        && !matches!(
            text.to_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
