//! Collects the errors of a pipeline file.

use crate::text::error::{PipelineError, PipelineErrors};
use crate::text::place::Place;
use crate::text::source::{Spot, Texts};
use std::collections::HashSet;
use std::path::PathBuf;

/// Collects errors.
pub struct Problems {
    /// The files and the command-line arguments.
    pub texts: Texts,
    found: Vec<(Spot, PipelineError)>,
    /// The positions and messages of the errors found.
    known: HashSet<(PathBuf, usize, usize, String)>,
}

impl Problems {
    /// Creates an empty collection for the texts `texts`.
    pub fn new(texts: Texts) -> Self {
        Self {
            texts,
            found: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Adds an error; duplicates, which several points of a matrix may cause, are dropped.
    pub fn add(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let error = self.texts.error(spot, message.into(), hint.into());
        self.push(spot, error);
    }

    /// Adds an error, and returns `None` as the missing value.
    pub fn fail<T>(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) -> Option<T> {
        self.add(spot, message, hint);
        None
    }

    /// Adds an error whose line must not be shown.
    pub fn add_blank(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let mut error = self.texts.error(spot, message.into(), hint.into());
        error.excerpt = String::new();
        self.push(spot, error);
    }

    /// Adds an error that already has a position.
    pub fn push(&mut self, spot: Spot, error: PipelineError) {
        let Place { line, column } = error.place;
        if self
            .known
            .insert((error.file.clone(), line, column, error.message.clone()))
        {
            self.found.push((spot, error));
        }
    }

    /// True if there are any errors.
    pub fn any(&self) -> bool {
        !self.found.is_empty()
    }

    /// The number of errors.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The errors, with those of the command line after those of the file.
    pub fn finish(mut self) -> PipelineErrors {
        self.found
            .sort_by_key(|(spot, _)| (spot.text, spot.place.line, spot.place.column));
        PipelineErrors(self.found.into_iter().map(|(_, error)| error).collect())
    }
}
