//! Errors of the pipeline file and of the command line that goes with it: what is wrong, where, and what to do about it.

use super::model::Place;
use std::fmt;
use std::path::PathBuf;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineError {
    /// The file, or `--set`, `--profile` or `STAGE` where an argument of the command line is wrong.
    pub file: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong, a lowercase fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The line, control characters replaced.
    pub excerpt: String,
    /// How many characters of the line are meant, from the place's column on.
    pub width: usize,
}

/// The longest piece of a line that is shown.
const SHOWN: usize = 120;

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        let file = visible(&self.file.display().to_string());
        write!(f, "{file}:{line}:{column}: {}", self.message)?;
        let gutter = line.to_string().len();
        let before = column.saturating_sub(1);
        // A long line is cut to a window around the place.
        let skip = before.saturating_sub(SHOWN / 2);
        let shown: String = self.excerpt.chars().skip(skip).take(SHOWN).collect();
        let length = shown.chars().count();
        let pad = before - skip;
        if !self.excerpt.trim().is_empty() && pad <= length {
            let blank: String = shown
                .chars()
                .take(pad)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let carets = "^".repeat(self.width.clamp(1, (length - pad).max(1)));
            write!(
                f,
                "\n{:gutter$} |\n{line} | {}\n{:gutter$} | {blank}{carets}",
                "",
                shown.trim_end(),
                ""
            )?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n{:gutter$} = hint: {hint}", "")?;
        }
        Ok(())
    }
}

impl std::error::Error for PipelineError {}

/// All mistakes found in one go, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineErrors(pub Vec<PipelineError>);

/// How many mistakes are shown at once.
const LISTED: usize = 20;

impl fmt::Display for PipelineErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().take(LISTED).enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{error}")?;
        }
        if self.0.len() > LISTED {
            write!(f, "\n\nand {} more", self.0.len() - LISTED)?;
        }
        Ok(())
    }
}

impl std::error::Error for PipelineErrors {}

impl From<PipelineError> for PipelineErrors {
    fn from(error: PipelineError) -> Self {
        Self(vec![error])
    }
}

/// A text whose control characters, which an escape in a file can write, are shown and not sent to a terminal.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown
}
