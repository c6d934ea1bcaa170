//! The commands, a module each.

pub(crate) mod artifact;
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
pub(crate) mod filter;
pub(crate) mod labels;
pub(crate) mod logs;
pub(crate) mod plan;
mod plan_file;
pub(crate) mod policy;
pub(crate) mod preview;
mod prune;
pub(crate) mod quality;
mod remote;
mod results;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod stages;
pub(crate) mod watch;
pub(crate) mod why;
