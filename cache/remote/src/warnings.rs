//! Warnings for the user, each kind once.

use cache::parallel::locked;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The kind of a warning about a single request, while others succeed.
pub(crate) const REQUEST_FAILED: &str = "request failed";

/// The kind of the warning that the circuit breaker opened.
pub(crate) const UNAVAILABLE: &str = "unavailable";

/// Warnings by kind: the text and the number of occurrences.
#[derive(Default)]
pub(crate) struct Warnings {
    by_kind: Mutex<BTreeMap<String, (String, u64)>>,
}

impl Warnings {
    /// Counts an occurrence of a warning. The first occurrence of a kind determines its text.
    pub(crate) fn add(&self, kind: &str, text: impl FnOnce() -> String) {
        let mut warnings = locked(&self.by_kind);
        match warnings.get_mut(kind) {
            Some((_, count)) => *count += 1,
            None => {
                warnings.insert(kind.to_owned(), (text(), 1));
            }
        }
    }

    /// Adds the warnings of a worker process.
    pub(crate) fn merge(&self, more: Vec<(String, String, u64)>) {
        let mut warnings = locked(&self.by_kind);
        for (kind, text, count) in more {
            warnings.entry(kind).or_insert((text, 0)).1 += count;
        }
    }

    /// Removes and returns all warnings: kind, text, number of occurrences.
    pub(crate) fn take(&self) -> Vec<(String, String, u64)> {
        let warnings = std::mem::take(&mut *locked(&self.by_kind));
        let flat = |(kind, (text, count))| (kind, text, count);
        warnings.into_iter().map(flat).collect()
    }

    /// Removes and returns the texts of all warnings. If the remote became unavailable, that warning replaces
    /// those about requests that failed before.
    pub(crate) fn take_texts(&self) -> Vec<String> {
        let text = |(_, text, count): (String, String, u64)| match (count, text.split_once('\n')) {
            (1, _) => text,
            (_, None) => format!("{text} ({count} times)"),
            (_, Some((first, rest))) => format!("{first} ({count} times)\n{rest}"),
        };
        let mut warnings = self.take();
        if warnings.iter().any(|(kind, ..)| kind == UNAVAILABLE) {
            warnings.retain(|(kind, ..)| kind != REQUEST_FAILED);
        }
        warnings.into_iter().map(text).collect()
    }
}
