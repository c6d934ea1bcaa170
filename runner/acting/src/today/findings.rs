//! The findings on new rows, and what is refused for them.

use crate::refused;
use runner_engine::Failure;

/// The findings on new rows.
#[derive(Default)]
pub(crate) struct Today {
    /// Sentences for people.
    pub notes: Vec<String>,
    /// Days missing between the history and the rows: a sentence.
    pub(super) gaps: Vec<String>,
    /// Contradictions, for which nothing is decided: a sentence and a hint.
    pub(super) wrong: Vec<(String, &'static str)>,
    /// Symbols that no history has: a sentence.
    pub(super) unknown: Vec<String>,
}

impl Today {
    /// The failure of a stage that reads the rows: where they have unknown symbols, those come first, as
    /// rows of one day alone are what most stages refuse of them.
    pub(crate) fn explained(&self, failure: Failure) -> Failure {
        match self.unknown.first() {
            None => failure,
            Some(unknown) => Failure {
                causes: vec![failure.message],
                ..refused(unknown.clone())
            }
            .hint("leave their rows out: a policy decides on the symbols that it was trained on"),
        }
    }

    /// Refuses contradictions, and gaps unless they are allowed, which become notes.
    pub(crate) fn check(&mut self, allow_gap: bool) -> Result<(), Failure> {
        if let Some((what, hint)) = self.wrong.first() {
            return Err(Failure {
                causes: self.notes.clone(),
                ..refused(what.clone())
            }
            .hint(*hint));
        }
        match self.gaps.first() {
            Some(gap) if !allow_gap => Err(refused(gap.clone())
                .hint("give the files of the days between, too; `--allow-gap` decides without them")),
            _ => {
                self.notes.append(&mut self.gaps);
                Ok(())
            }
        }
    }
}
