//! The commands, a module each.

mod artifact;
pub(crate) mod bench;
mod bench_cache;
pub(crate) mod cache;
mod cache_report;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod export;
mod filter;
mod labels;
pub(crate) mod plan;
mod plan_file;
pub(crate) mod policy;
mod preview;
mod prune;
mod quality;
mod remote;
mod results;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod show;
pub(crate) mod stages;
pub(crate) mod watch;
pub(crate) mod why;
