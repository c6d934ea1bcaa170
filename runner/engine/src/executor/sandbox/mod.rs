//! The sandbox in which external programs run: who starts them, what they see, and how the whole family of processes ends.
//!
//! ```text
//! engine ── server ── supervisor ── init (PID 1) ── shell ── …      namespaces
//!                  └─ supervisor ── shell ── …                      without them
//! ```
//!
//! - The *server* (`runner sandbox`) is started with the first program of a run. It has one thread and little memory, so that a program costs a
//!   `fork` and not the start of this binary. Each request is a control socket and the pipe of the log.
//! - The *supervisor* is a fork of the server, one for each program. It is in the host's namespaces, obeys the control socket, and kills the family
//!   when that closes: when the engine asks, or exits for any reason.
//! - *init* is the first process of a PID namespace. It builds the private tree of files, drops every privilege, and exits with the shell; the kernel
//!   then kills whatever else the program started.
//! - Without namespaces the supervisor is a child subreaper: what the program leaves behind becomes its child, and is killed.
//!
//! The messages of the control socket are in [`protocol`].

mod client;
mod descendants;
#[cfg(target_os = "linux")]
mod executed;
mod isolation;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod privileges;
mod probe;
mod protocol;
mod server;
mod supervisor;
mod system;
#[cfg(target_os = "linux")]
mod tree;
mod visible;

pub(crate) use client::Running;
pub(crate) use isolation::Sandbox;
pub use probe::{Isolated, probe};
pub(crate) use protocol::{Said, Spec};
use server::SANDBOX;
pub use server::sandbox;
pub(crate) use visible::is_visible;
