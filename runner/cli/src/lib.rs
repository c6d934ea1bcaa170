//! The command line: arguments, a module for each command, the registry of stage kinds and the configuration
//! of a home. Only this crate accesses the environment, the working directory and the terminal.

mod args;
mod commands;
mod complete;
mod config;
mod home;
mod interrupt;
mod output;
mod program;
pub mod registry;
mod session;

pub use program::main;
