//! The command line: arguments, a module for each command, the registry of stage kinds and the configuration
//! of a home. Only this crate accesses the environment, the working directory and the terminal.

mod arguments;
mod commands;
mod complete;
mod config;
mod home;
mod interrupt;
mod output;
mod packages;
mod program;
mod project;
pub mod registry;
mod session;
mod values;

pub use program::{main, main_with};
