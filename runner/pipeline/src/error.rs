//! Errors of the pipeline file and of the command line that goes with it: what is wrong, where, and what to do about it.

use super::Place;
use super::source::{Spot, Texts, visible};
use std::collections::HashSet;
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

impl PipelineError {
    /// A mistake in an argument of the command line; `what` names the argument (`STAGE`).
    pub(crate) fn argument(what: &str, text: &str, message: String, hint: String) -> Self {
        let mut texts = Texts::default();
        let index = texts.push(PathBuf::from(what), text.to_owned());
        texts.error(Spot::whole(index, text), message, hint)
    }
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

/// Collects mistakes.
pub struct Problems {
    /// The files and the arguments of the command line.
    pub texts: Texts,
    found: Vec<(Spot, PipelineError)>,
    /// The places and messages of those that were found.
    known: HashSet<(PathBuf, usize, usize, String)>,
}

impl Problems {
    /// No mistakes yet in these texts.
    pub fn new(texts: Texts) -> Self {
        Self {
            texts,
            found: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Notes a mistake; the same one twice (at two points of a matrix) counts once.
    pub fn add(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let error = self.texts.error(spot, message.into(), hint.into());
        self.push(spot, error);
    }

    /// Notes a mistake whose line is not to be shown.
    pub fn add_blank(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let mut error = self.texts.error(spot, message.into(), hint.into());
        error.excerpt = String::new();
        self.push(spot, error);
    }

    /// Notes a mistake that knows its place.
    pub fn push(&mut self, spot: Spot, error: PipelineError) {
        let Place { line, column } = error.place;
        if self
            .known
            .insert((error.file.clone(), line, column, error.message.clone()))
        {
            self.found.push((spot, error));
        }
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.found.is_empty()
    }

    /// The number of mistakes.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The mistakes, those of the command line after those of the file.
    pub fn finish(mut self) -> PipelineErrors {
        self.found
            .sort_by_key(|(spot, _)| (spot.text, spot.place.line, spot.place.column));
        PipelineErrors(self.found.into_iter().map(|(_, error)| error).collect())
    }
}

/// The candidate that `name` most likely stands for.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&wanted, &lower);
        let longest = wanted.chars().count().max(lower.chars().count());
        let close = strsim::jaro_winkler(&wanted, &lower);
        let part = wanted.len() >= 3 && lower.len() >= 3 && (lower.contains(&wanted) || wanted.contains(&lower));
        let fits = distance <= (longest / 3).max(1) || close >= 0.86 || part;
        if fits && best.is_none_or(|(score, _)| close > score) {
            best = Some((close, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A hint for an unknown name: the nearest valid one, or all of them. `what` is their plural (`parameters`).
pub fn suggest<'a>(name: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(name, candidates.iter().copied()) {
        Some(found) => format!("did you mean `{found}`?"),
        None if candidates.is_empty() => format!("there are no {what} here"),
        None => format!("the {what} are {}", list(candidates)),
    }
}

/// `a`, `b` and 3 more.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 16;
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MOST {
        text.push_str(&format!(" and {} more", names.len() - MOST));
    }
    text
}
