//! The objects that garbage collection keeps for open accounts.

use super::{Entry, Ledger, StandIn};
use crate::load;
use crate::policies::{Kept, PolicyRef, Registry};
use runner_engine::Failure;
use std::path::Path;

/// The objects that garbage collection keeps for registered policies and open paper accounts.
///
/// # Errors
/// If the registry or a ledger cannot be read: nothing may be removed then.
pub fn kept(home: &Path) -> Result<Kept, Failure> {
    let mut kept = Registry::new(home).kept()?;
    let accounts = kept_for_accounts(home)?;
    kept.actions.extend(accounts.actions);
    kept.runs.extend(accounts.runs);
    Ok(kept)
}

/// The actions and runs of the policies that open accounts, and the accounts beside them, act by. A run that
/// is not in the history here adds none.
///
/// # Errors
/// If the registry or a ledger cannot be read.
pub fn kept_for_accounts(home: &Path) -> Result<Kept, Failure> {
    let mut kept = Kept::default();
    let registry = Registry::new(home);
    for name in Ledger::names(home)? {
        let ledger = Ledger::read(home, &name)?;
        if ledger.is_closed() {
            continue;
        }
        let shadows = ledger.last_night().into_iter().flat_map(|night| night.beside.values());
        let shadows = shadows.filter_map(|shadow| shadow.policy.as_ref());
        for policy in shadows.chain([ledger.policy()]) {
            keep(&mut kept, policy, &registry, home)?;
        }
        let previous = ledger.entries().iter().rev().find_map(|entry| match entry {
            Entry::Policy(moved) => Some(&moved.from),
            _ => None,
        });
        if let Some(previous) = previous {
            keep(&mut kept, previous, &registry, home)?;
        }
        // Before its first night an account beside is known by its name alone.
        for name in &ledger.opened().beside {
            if let Some((run, _)) = name.split_once('/') {
                kept.runs.insert(run.to_owned());
            }
        }
    }
    Ok(kept)
}

fn keep(kept: &mut Kept, policy: &StandIn, registry: &Registry, home: &Path) -> Result<(), Failure> {
    if let Ok(reference) = PolicyRef::parse(&policy.name) {
        let version = registry.find(&reference, None)?;
        if let Some(version) = version.filter(|version| version.digest == policy.digest) {
            kept.actions.extend(version.from.key);
            kept.runs.insert(version.from.run);
        }
    } else if let Some((run, stage)) = policy.name.split_once('/') {
        kept.runs.insert(run.to_owned());
        if let Ok(run) = load(&home.join("runs"), run) {
            let id = stage.rsplit_once('.').map_or(stage, |(stage, _)| stage);
            let found = run.stage(stage).or_else(|| run.stage(id));
            kept.actions.extend(found.and_then(|stage| stage.key));
        }
    }
    Ok(())
}
