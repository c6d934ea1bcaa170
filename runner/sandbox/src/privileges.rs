//! Drops every privilege, even those of root: nothing in the sandbox can mount, or gain privileges by
//! executing a file.

use super::refused::refused;
use super::system;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Prevents this process and all its children from gaining privileges by executing a file.
pub(super) fn forgo() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(refused("set no_new_privs"))?;
    // Root gains the capabilities in the bounding set with every program that it executes.
    system::empty_bounding_set().map_err(refused("empty the bounding set of capabilities"))?;
    rustix::thread::clear_ambient_capability_set().map_err(refused("clear the ambient capabilities"))
}

/// Drops all capabilities of this process, which has called [`forgo`] or inherited its effect.
pub(super) fn drop_all() -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(refused("drop the capabilities"))
}
