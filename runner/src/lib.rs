//! The runner: pipeline files, plans, the engine, the history of runs, and reporters. The binary is thin.
//!
//! - [`pipeline`]: from a YAML file to a resolved graph of stages.
//! - [`key`]: what an action's result depends on.
//! - [`engine`]: plans and runs; [`executor`]: how an action is run; [`reporter`]: who shows what happens.
//! - [`history`]: the runs so far; [`report`]: a run as a page.
//! - [`lookahead`]: whether what is made for a date depends on later data.
//! - [`config`]: what a home is configured with.
//! - [`query`]: a language to choose among runs; [`compare`]: runs side by side.
//! - [`cli`]: the command line.

pub mod cache_command;
pub mod cli;
pub mod compare;
pub mod config;
pub mod engine;
pub mod error;
pub mod executor;
pub mod exit;
pub mod history;
pub mod home;
pub mod key;
pub mod lookahead;
pub mod pipeline;
pub mod query;
pub mod registry;
pub mod report;
pub mod reporter;
pub mod text;
