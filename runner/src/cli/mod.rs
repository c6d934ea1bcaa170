//! The command line: arguments, and a module for each command. Only here are the environment, the current folder and the
//! terminal looked at.

mod args;
mod artifact;
mod bench;
mod bench_cache;
mod cache;
mod check;
mod choose;
mod compare;
mod doctor;
mod exec;
mod export;
mod marks;
mod output;
mod plan;
mod planned;
mod preview;
mod program;
mod prune;
mod remote;
mod results;
mod runs;
mod session;
mod show;
mod stages;
mod watch;
mod why;

pub use program::main;
