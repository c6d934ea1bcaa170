//! Errors of the pipeline file and of its command-line arguments: message, position and hint.

use crate::text::place::Place;
use stages_core::visible::visible;
use std::fmt;
use std::path::PathBuf;

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineError {
    /// The file; or `--set`, `--profile` or `STAGE` if that command-line argument is invalid.
    pub file: PathBuf,
    /// The position in the file.
    pub place: Place,
    /// The message, a lowercase fragment.
    pub message: String,
    /// A hint on how to fix the error.
    pub hint: Option<String>,
    /// The erroneous line of the file, with control characters replaced.
    pub excerpt: String,
    /// The number of characters to mark, starting at the position's column.
    pub width: usize,
}

/// The maximum length of an excerpt, in characters.
const SHOWN: usize = 120;

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        let file = self.file.display().to_string();
        let file = visible(&file);
        write!(f, "{file}:{line}:{column}: {}", self.message)?;
        let gutter = line.to_string().len();
        let before = column.saturating_sub(1);
        // A long line is cut to a window around the position.
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

/// All errors found in one pass, in the order of their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineErrors(pub Vec<PipelineError>);

/// The maximum number of errors shown.
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
