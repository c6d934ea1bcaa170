//! The commands, a module each.

pub(crate) mod bench;
mod bench_cache;
pub(crate) mod cache;
mod cache_report;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod labels;
pub(crate) mod logs;
pub(crate) mod manual;
pub(crate) mod plan;
mod plan_file;
pub(crate) mod policy;
mod prune;
mod remote;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod stages;
pub(crate) mod track;
pub(crate) mod watch;
pub(crate) mod why;
