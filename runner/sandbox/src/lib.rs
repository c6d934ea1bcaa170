//! The sandbox in which external programs run: how they are started, what they see, and how the whole family
//! of processes ends. The sandbox does not know pipelines or stores.
//!
//! ```text
//! engine ── server ── supervisor ── init (PID 1) ── shell ── …      namespaces
//!                  └─ supervisor ── shell ── …                      without them
//! ```
//!
//! - The *server* (`runner sandbox`) is started with the first program of a run. It has one thread and little
//!   memory, so that a supervisor costs a `fork` and not the start of this binary. Each request is a control
//!   socket.
//! - A *supervisor* is a fork of the server that runs one program after the other, all with the same
//!   [`protocol::Surroundings`]. It has the host's files and processes, obeys the control socket, and kills
//!   the family when that closes: when the engine asks, or exits for any reason. What takes long and keeps
//!   nothing of a program is prepared once: namespaces of users, of the network and of the host's name, and
//!   the tree of files.
//! - *init* is the first process of a PID namespace, of a program's own as are those of mounts and IPC. It
//!   completes the private tree of files, drops every privilege, and exits with the shell; the kernel then
//!   kills whatever else the program started.
//! - Without namespaces the supervisor is a child subreaper: what the program leaves behind becomes its
//!   child, and is killed. Its access to files is limited by Landlock where the system has that, and on
//!   macOS by a profile of `sandbox-exec`.
//!
//! The messages of the control socket are in [`protocol`].

mod client;
mod descendants;
mod descriptors;
#[cfg(target_os = "linux")]
mod executed;
mod family;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod isolated;
mod isolated_by;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod namespaces;
mod prepared;
#[cfg(target_os = "linux")]
mod privileges;
mod probe;
mod process;
mod protocol;
#[cfg(target_os = "linux")]
mod refused;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod server;
mod supervisor;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tree;
mod usage;
mod visible;

pub use client::{Client, Running, this_program};
pub use isolated_by::Isolated;
pub use probe::{Probed, probe};
pub use process::is_ignored;
pub use protocol::{Said, Spec, Surroundings};
pub use server::sandbox;
pub use usage::{
    USAGE, family_memory, machine_cores, machine_memory, peak_memory, peak_memory_of, tree_cpu, tree_memory,
};
pub use visible::is_visible;
