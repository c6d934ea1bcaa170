//! The file of a ledger.

use super::chain::{self, Broken, Chain};
use super::check::{self, check, night_of};
use super::{
    Booking, Entry, FittedCosts, Night, Opened, Reported, SlippageTable, StandIn, Stop, Unmatched, costs,
    real, slippage, sums,
};
use crate::document::{self, Locked};
use crate::policies::check_policy_name;
use cache::{regular_file, shared};
use runner_engine::{Failure, text};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The ledger of a paper account.
#[derive(Debug)]
pub struct Ledger {
    home: PathBuf,
    opened: Opened,
    entries: Vec<Entry>,
    hashes: Vec<String>,
    /// The length of the entries' lines in bytes.
    length: u64,
    /// True if the last line lacks its line feed.
    is_open: bool,
    notes: Vec<String>,
}

/// The end of a ledger, kept beside it: entries that are removed at the end leave no trace in the chain.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub entries: usize,
    pub hash: String,
}

fn folder(home: &Path) -> PathBuf {
    home.join("paper")
}

pub(super) fn path(home: &Path, name: &str) -> PathBuf {
    folder(home).join(format!("{name}.jsonl"))
}

pub(super) fn head_path(home: &Path, name: &str) -> PathBuf {
    folder(home).join(format!("{name}.head"))
}

/// Locks an account; `None` if another process holds the lock. It is held from reading the ledger until its
/// entries are added.
///
/// # Errors
/// If the lock file cannot be made.
pub fn lock(home: &Path, name: &str) -> Result<Option<Locked>, Failure> {
    document::lock(&folder(home), name)
}

impl Ledger {
    /// The names of the accounts of a home, sorted.
    ///
    /// # Errors
    /// If the directory cannot be read. The directory need not exist.
    pub fn names(home: &Path) -> Result<Vec<String>, Failure> {
        let entries = document::entries(&folder(home))?;
        let names = entries.iter().filter_map(|(name, _)| name.strip_suffix(".jsonl"));
        let names = names.filter(|name| check_policy_name(name).is_ok());
        Ok(names.map(ToOwned::to_owned).collect())
    }

    /// Opens an account.
    ///
    /// # Errors
    /// If there is one with its name, or the name cannot be one.
    pub fn create(home: &Path, opened: Opened) -> Result<Self, Failure> {
        check_name(&opened.name)?;
        if Self::find(home, &opened.name)?.is_some() {
            return Err(
                Failure::usage(format!("there is already an account `{}`", opened.name)).hint(format!(
                    "choose another name; `runner paper show {}` shows it",
                    opened.name
                )),
            );
        }
        let mut ledger = Self {
            home: home.to_owned(),
            opened: opened.clone(),
            entries: Vec::new(),
            hashes: Vec::new(),
            length: 0,
            is_open: false,
            notes: Vec::new(),
        };
        // The head of an account of that name whose ledger was moved away.
        let _ = std::fs::remove_file(head_path(home, &ledger.opened.name));
        ledger.append(vec![Entry::Opened(Box::new(opened))])?;
        Ok(ledger)
    }

    /// Reads an account, and verifies the chain of its entries.
    ///
    /// # Errors
    /// If there is no account of that name, it cannot be read, or its past was changed.
    pub fn read(home: &Path, name: &str) -> Result<Self, Failure> {
        check_name(name)?;
        match Self::find(home, name)? {
            Some(ledger) => Ok(ledger),
            None => {
                let names = Self::names(home)?;
                let hint = match names.is_empty() {
                    true => "`runner paper open NAME` opens the first".to_owned(),
                    false => runner_pipeline::suggest(name, "accounts", names.iter().map(String::as_str)),
                };
                Err(Failure::usage(format!("there is no account `{name}`")).hint(hint))
            }
        }
    }

    /// Reads an account as [`Ledger::read`] does; `None` if there is none of that name.
    ///
    /// # Errors
    /// If it cannot be read, or its past was changed.
    pub fn find(home: &Path, name: &str) -> Result<Option<Self>, Failure> {
        let path = path(home, name);
        let bytes = match regular_file::read(&path) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(Failure::at("cannot read", &path))?,
        };
        let head = document::read(&head_path(home, name), "move it away to continue without it")?;
        let chain = whole(&bytes, head.as_ref()).map_err(|broken| changed(&path, name, &broken))?;
        // The opening was cut off: it was never written.
        if chain.entries.is_empty() {
            return Ok(None);
        }
        Self::of(home, &path, name, chain).map(Some)
    }

    fn of(home: &Path, path: &Path, name: &str, chain: Chain) -> Result<Self, Failure> {
        let broken = |line, what: &str| {
            let what = what.to_owned();
            changed(path, name, &Broken { line, what })
        };
        let opened = match chain.entries.first() {
            Some(Entry::Opened(opened)) if opened.name == name => (**opened).clone(),
            Some(Entry::Opened(opened)) => {
                return Err(Failure::usage(format!(
                    "`{}` is the ledger of the account `{}`",
                    path.display(),
                    opened.name
                ))
                .hint("rename the file back"));
            }
            _ => return Err(broken(1, "it does not open the account")),
        };
        let note = |what: String| format!("account {name}: {what}, and counts as never written");
        Ok(Self {
            home: home.to_owned(),
            opened,
            length: chain.length as u64,
            is_open: chain.is_open,
            notes: chain.dropped.map(note).into_iter().collect(),
            entries: chain.entries,
            hashes: chain.hashes,
        })
    }

    /// The opening.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The name of the account.
    pub fn name(&self) -> &str {
        &self.opened.name
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The digests of the entries' lines.
    pub fn hashes(&self) -> &[String] {
        &self.hashes
    }

    /// The length of the entries' lines in bytes.
    pub(super) fn length(&self) -> usize {
        self.length as usize
    }

    /// The nights, in order.
    pub fn nights(&self) -> impl DoubleEndedIterator<Item = &Night> {
        self.entries.iter().filter_map(night_of)
    }

    /// The last night; `None` before the first.
    pub fn last_night(&self) -> Option<&Night> {
        self.nights().next_back()
    }

    /// The policy that acts.
    pub fn policy(&self) -> &StandIn {
        let moved = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Policy(moved) => Some(&moved.to),
            _ => None,
        });
        moved.unwrap_or(&self.opened.version)
    }

    /// The halt that no person has ended.
    pub fn stopped(&self) -> Option<&Stop> {
        check::stopped(&self.entries)
    }

    /// True if nothing of what the last night decided is traded any more: the account is closed, or a person
    /// has halted it since.
    pub fn is_over(&self) -> bool {
        let after = self
            .entries
            .iter()
            .rev()
            .take_while(|entry| !matches!(entry, Entry::Night(_)));
        let by_person = |entry: &Entry| matches!(entry, Entry::Halted(stop) if stop.by == "person");
        self.is_closed() || self.stopped().is_some() && after.clone().any(by_person)
    }

    /// True if the account is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.entries.last(), Some(Entry::Closed(_)))
    }

    /// Notes on what was read, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Checks that the bookings of every night are the change of its net asset value. The chain was verified
    /// when the ledger was read.
    ///
    /// # Errors
    /// The first night whose bookings do not add up.
    pub fn verify(&self) -> Result<(), Failure> {
        sums::check_all(&self.entries).map_err(|what| {
            Failure::machine(format!("account `{}`: {what}", self.name()))
                .hint("an earlier version of this program may have written it: report it")
        })
    }

    /// The differences between fills as a broker reports them and as the model booked them that no night has
    /// booked yet, one for each fill.
    pub fn real_fill_difference(&self) -> Vec<Booking> {
        real::differences(&self.entries)
    }

    /// The fills that a broker reported, with their orders and the model's fills.
    pub fn reported(&self) -> Vec<Reported<'_>> {
        real::reported(&self.entries)
    }

    /// The orders of nights with reported fills of which the broker filled another quantity than the model,
    /// contracts that have expired left out.
    pub fn unmatched(&self) -> Vec<Unmatched> {
        real::unmatched(&self.entries, self.last_night().map(|night| night.date))
    }

    /// The slippage of the reported fills; `None` if there are none.
    pub fn slippage(&self) -> Option<SlippageTable> {
        slippage::measure(&self.reported())
    }

    /// The costs that the reported fills fit.
    pub fn fitted_costs(&self) -> FittedCosts {
        costs::fit(&self.reported())
    }

    /// Adds entries: all of them, or none. The caller holds the [`lock`] since it read the ledger.
    ///
    /// # Errors
    /// If one of them breaks a rule of the ledger, or they cannot be written.
    pub fn append(&mut self, entries: Vec<Entry>) -> Result<(), Failure> {
        let before = self.entries.len();
        let is_right = entries.into_iter().try_for_each(|entry| {
            check(&self.entries, &entry)?;
            check_written(&entry)?;
            self.entries.push(entry);
            Ok(())
        });
        let added = is_right.and_then(|()| self.write(before));
        if added.is_err() {
            self.entries.truncate(before);
        }
        added
    }

    /// Writes the entries from a number on.
    fn write(&mut self, first: usize) -> Result<(), Failure> {
        if self.entries.len() == first {
            return Ok(());
        }
        let path = path(&self.home, self.name());
        let failed = document::unwritable(&path);
        let prev = self.hashes.last().cloned().unwrap_or_else(chain::origin);
        let encoded = chain::encode(first, &prev, &self.entries[first..]);
        let (mut text, hashes) =
            encoded.map_err(|err| Failure::caused("cannot write the entries as JSON", &err))?;
        if self.is_open {
            text.insert(0, '\n');
        }
        shared::create_dir_all(&folder(&self.home)).map_err(failed)?;
        let mut file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        // Only the file's owner can share it.
        let _ = shared::share_file(&path);
        let found = file.metadata().map_err(failed)?.len();
        if found != self.length {
            if found < self.length || self.notes.is_empty() && first > 0 {
                return Err(Failure::machine(format!(
                    "the account `{}` was changed by another process meanwhile",
                    self.name()
                ))
                .hint("nothing was written: run the command again"));
            }
            // What was not written whole.
            file.set_len(self.length).map_err(failed)?;
        }
        let written = file.write_all(text.as_bytes()).and_then(|()| cache::flush(&file));
        if let Err(err) = written {
            let _ = file.set_len(self.length);
            return Err(failed(err));
        }
        self.hashes.extend(hashes);
        self.length += text.len() as u64;
        self.is_open = false;
        self.notes.clear();
        write_head(&self.home, self.name(), &self.hashes)
    }
}

/// Records the end of a ledger.
fn write_head(home: &Path, name: &str, hashes: &[String]) -> Result<(), Failure> {
    let path = head_path(home, name);
    let head = Head {
        entries: hashes.len(),
        hash: hashes.last().cloned().unwrap_or_default(),
    };
    document::write(&path, &head).map_err(document::unwritable(&path))
}

/// Writes the whole text of a ledger, whose lines have these digests.
pub(super) fn replace(home: &Path, name: &str, text: &str, hashes: &[String]) -> Result<(), Failure> {
    let path = path(home, name);
    document::write_text(&path, text).map_err(document::unwritable(&path))?;
    write_head(home, name, hashes)
}

fn check_name(name: &str) -> Result<(), Failure> {
    check_policy_name(name).map_err(|failure| Failure {
        message: format!("`{name}` cannot be the name of an account"),
        ..failure
    })
}

/// Refuses an entry that its line would not give back.
fn check_written(entry: &Entry) -> Result<(), Failure> {
    let text = serde_json::to_string(entry);
    let again = text.and_then(|text| serde_json::from_str::<Entry>(&text));
    match again.is_ok_and(|again| again == *entry) {
        true => Ok(()),
        false => Err(Failure::machine(format!(
            "the entry `{}` of {} has a number that is not finite",
            entry.kind(),
            entry.date()
        ))
        .hint("nothing was written; this is a bug in the program")),
    }
}

/// The chain of a ledger's text, which reaches as far as its head says.
fn whole(bytes: &[u8], head: Option<&Head>) -> Result<Chain, Broken> {
    let chain = chain::read(bytes)?;
    let Some(head) = head else { return Ok(chain) };
    let there = chain.entries.len();
    match head.entries.checked_sub(1).and_then(|last| chain.hashes.get(last)) {
        Some(hash) if *hash == head.hash => Ok(chain),
        Some(_) => Err(Broken {
            line: head.entries,
            what: "it is not the entry that was written: the ledger was rewritten".to_owned(),
        }),
        None => Err(Broken {
            line: there + 1,
            what: format!(
                "{} that followed line {there} are gone",
                text::count(head.entries.saturating_sub(there), "line")
            ),
        }),
    }
}

/// The failure of a ledger whose past was changed.
fn changed(path: &Path, name: &str, broken: &Broken) -> Failure {
    Failure::machine(format!(
        "the past of the account `{name}` was changed: `{}`, line {}: {}",
        path.display(),
        broken.line,
        broken.what
    ))
    .hint(
        "restore the file from a backup or with `runner cache pull`; entries are only ever appended to a \
        ledger",
    )
}
