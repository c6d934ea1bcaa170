//! A ledger and its copy in another store.

use super::Ledger;
use super::chain;
use super::file::{Head, head_path, lock, path, replace};
use crate::document;
use crate::policies::check_policy_name;
use runner_engine::Failure;
use std::path::Path;

/// The outcome of comparing a ledger with its copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// Both have the same entries.
    Same,
    /// The copy goes on where this ledger ends.
    Theirs,
    /// This ledger goes on where the copy ends.
    Ours,
    /// They went on differently.
    Forked {
        /// The first line that differs, counted from 1.
        line: usize,
        /// Its digest here.
        ours: String,
        /// Its digest in the copy.
        theirs: String,
    },
}

impl Ledger {
    /// The text of the ledger, for another store.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn text(&self, home: &Path) -> Result<String, Failure> {
        let path = path(home, self.name());
        let failed = Failure::at("cannot read", &path);
        let mut bytes = cache::regular_file::read(&path).map_err(failed)?;
        bytes.truncate(self.length());
        let mut text = String::from_utf8(bytes).map_err(|err| failed(std::io::Error::other(err)))?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }

    /// Compares the digests of this ledger with those of a copy's text; `None` if that is no whole ledger.
    pub fn compare(&self, theirs: &str) -> Option<Synced> {
        Some(compare(self.hashes(), &hashes(self.name(), theirs)?))
    }

    /// Takes the copy of an account from another store, if it goes on where the ledger here ends, or there is
    /// none here; a ledger whose past was changed here is restored from a copy that has all its entries.
    /// `None` if the copy is no whole ledger.
    ///
    /// # Errors
    /// If the ledger cannot be read or written, or another process adds to it.
    pub fn take(home: &Path, name: &str, theirs: &str) -> Result<Option<Synced>, Failure> {
        let Some(copy) = hashes(name, theirs) else {
            return Ok(None);
        };
        let Some(_lock) = lock(home, name)? else {
            return Err(Failure::machine(format!("the account `{name}` is in use"))
                .hint("another command adds to its ledger: try again when it has ended"));
        };
        let synced = match Self::find(home, name) {
            Ok(Some(ledger)) => compare(ledger.hashes(), &copy),
            Ok(None) => Synced::Theirs,
            Err(failure) => {
                let head: Option<Head> = document::read(&head_path(home, name), "move it away")?;
                let is_there = |head: &Head| copy.get(head.entries.wrapping_sub(1)) == Some(&head.hash);
                match head.as_ref().is_some_and(is_there) {
                    true => Synced::Theirs,
                    false => return Err(failure),
                }
            }
        };
        if synced == Synced::Theirs {
            replace(home, name, theirs, &copy)?;
        }
        Ok(Some(synced))
    }
}

/// The digests of the lines of a ledger's text; `None` if it is not the whole ledger of this account.
fn hashes(name: &str, text: &str) -> Option<Vec<String>> {
    // A name of another store is a path here.
    check_policy_name(name).ok()?;
    let chain = chain::read(text.as_bytes()).ok()?;
    let is_whole = chain.dropped.is_none() && !chain.is_open;
    let is_named = matches!(chain.entries.first(), Some(super::Entry::Opened(opened)) if opened.name == name);
    (is_whole && is_named).then_some(chain.hashes)
}

fn compare(ours: &[String], theirs: &[String]) -> Synced {
    let differing = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
    match differing {
        Some(at) => Synced::Forked {
            line: at + 1,
            ours: ours[at].clone(),
            theirs: theirs[at].clone(),
        },
        None if ours.len() < theirs.len() => Synced::Theirs,
        None if ours.len() > theirs.len() => Synced::Ours,
        None => Synced::Same,
    }
}
