//! The documents that are transferred with a push or a pull: the registry of policies, and the ledgers of
//! paper accounts.

use cache::{RecordId, Store};
use cache_remote::{Document, Remote};
use runner_engine::Failure;
use runner_history::paper::{self, Ledger, Synced};
use runner_history::policies::{NamedPolicy, Registry, Taken};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The outcomes by name, of those that differ.
type Outcomes = BTreeMap<String, String>;

/// The outcomes of a transfer.
#[derive(Default)]
pub(super) struct Transferred {
    policies: Outcomes,
    accounts: Outcomes,
}

impl Transferred {
    /// The outcomes with the names of their kinds.
    pub(super) fn kinds(&self) -> [(&'static str, &Outcomes); 2] {
        [("policies", &self.policies), ("accounts", &self.accounts)]
    }

    /// A line for each outcome.
    pub(super) fn text(&self) -> String {
        let lines = |what: &str, outcomes: &Outcomes| -> String {
            let lines = outcomes.iter();
            lines
                .map(|(name, outcome)| format!("{what} {name}: {outcome}\n"))
                .collect()
        };
        lines("policy", &self.policies) + &lines("account", &self.accounts)
    }
}

const DIVERGED: &str = "not changed: the copies here and in the remote have diverged";
const REFUSED: &str = "not replaced: it is not signed by a trusted key there";
const UNREADABLE: &str = "not read: it was written by another version of this program";

/// The prefix of the documents that are ledgers; no policy's name has a slash.
const LEDGER: &str = "paper/";

/// The records of a push, and the records of the registered policies and of those that accounts act by in the
/// local store.
pub(super) fn with_policies(mut records: Vec<RecordId>, store: &Store) -> Result<Vec<RecordId>, Failure> {
    for key in paper::kept(store.root())?.actions {
        if store.action(key)?.is_some() {
            records.push(RecordId::Action(key));
        }
    }
    Ok(records)
}

/// Uploads the registry and the ledgers: each name that continues where the remote's ends.
pub(super) fn push(home: &Path, remote: &Remote) -> Result<Transferred, Failure> {
    let mut done = Transferred::default();
    for (name, ours) in Registry::new(home).all()? {
        let outcome = match remote.document(&name)? {
            Document::Refused => REFUSED,
            Document::Trusted(theirs) => match serde_json::from_value::<NamedPolicy>(theirs) {
                Ok(theirs) if theirs == ours => continue,
                Ok(theirs) if ours.follows(&theirs) => put(remote, &name, &json!(ours))?,
                Ok(theirs) if theirs.follows(&ours) => "not uploaded: the remote has more",
                _ => DIVERGED,
            },
            Document::Absent => put(remote, &name, &json!(ours))?,
        };
        done.policies.insert(name, outcome.to_owned());
    }
    for name in Ledger::names(home)? {
        let ours = Ledger::read(home, &name)?;
        let document = format!("{LEDGER}{name}");
        let put = || put(remote, &document, &json!(ours.text(home)?)).map(ToOwned::to_owned);
        let outcome = match remote.document(&document)? {
            Document::Refused => REFUSED.to_owned(),
            Document::Absent => put()?,
            Document::Trusted(theirs) => match theirs.as_str().and_then(|theirs| ours.compare(theirs)) {
                Some(Synced::Same) => continue,
                Some(Synced::Ours) => put()?,
                Some(Synced::Theirs) => "not uploaded: the remote has more".to_owned(),
                Some(Synced::Forked { line, ours, theirs }) => forked(line, &ours, &theirs),
                None => UNREADABLE.to_owned(),
            },
        };
        done.accounts.insert(name, outcome);
    }
    Ok(done)
}

fn forked(line: usize, ours: &str, theirs: &str) -> String {
    format!("{DIVERGED}, from line {line} on: {ours} here, {theirs} there")
}

fn put(remote: &Remote, name: &str, value: &Value) -> Result<&'static str, Failure> {
    Ok(match remote.put_document(name, value)? {
        true => "uploaded",
        false => "not uploaded: the remote does not answer",
    })
}

/// Fetches the registry and the ledgers: each name that continues where the local one ends. The records of
/// the policies that aliases point to, and of those that accounts act by, are added to `records`.
pub(super) fn pull(
    home: &Path,
    remote: &Remote,
    records: &mut Vec<RecordId>,
) -> Result<Transferred, Failure> {
    let registry = Registry::new(home);
    let mut done = Transferred::default();
    let (ledgers, policies): (Vec<_>, Vec<_>) = documents(home, remote)?
        .into_iter()
        .partition(|(name, _)| name.starts_with(LEDGER));
    for (name, document) in policies {
        let Ok(theirs) = serde_json::from_value::<NamedPolicy>(document) else {
            done.policies.insert(name, UNREADABLE.to_owned());
            continue;
        };
        let aliased = theirs
            .aliases()
            .into_values()
            .filter_map(|number| theirs.version(number)?.from.key);
        records.extend(aliased.map(RecordId::Action));
        let outcome = match registry.take(&name, &theirs)? {
            Taken::Same | Taken::Ours => continue,
            Taken::Theirs => "fetched",
            Taken::Neither => DIVERGED,
        };
        done.policies.insert(name, outcome.to_owned());
    }
    for (document, theirs) in ledgers {
        let name = &document[LEDGER.len()..];
        let taken = theirs.as_str().map(|theirs| Ledger::take(home, name, theirs));
        let outcome = match taken.transpose()?.flatten() {
            Some(Synced::Same | Synced::Ours) => continue,
            Some(Synced::Theirs) => "fetched".to_owned(),
            Some(Synced::Forked { line, ours, theirs }) => forked(line, &ours, &theirs),
            None => UNREADABLE.to_owned(),
        };
        done.accounts.insert(name.to_owned(), outcome);
    }
    records.extend(
        paper::kept_for_accounts(home)?
            .actions
            .into_iter()
            .map(RecordId::Action),
    );
    Ok(done)
}

/// The documents of the remote by name. If it cannot list its objects, those whose names are known here.
fn documents(home: &Path, remote: &Remote) -> Result<BTreeMap<String, Value>, Failure> {
    if let Some(documents) = remote.documents()? {
        return Ok(documents);
    }
    let ledgers = Ledger::names(home)?.into_iter().map(|name| format!("{LEDGER}{name}"));
    let names = Registry::new(home).names()?.into_iter().chain(ledgers);
    let mut known = BTreeMap::new();
    for name in names {
        if let Document::Trusted(document) = remote.document(&name)? {
            known.insert(name, document);
        }
    }
    Ok(known)
}
