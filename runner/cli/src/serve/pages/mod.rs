//! The pages, a module each.

mod artifact;
mod cache;
mod compare;
mod data;
mod pipelines;
mod policies;
mod run;
mod runs;
mod schedule;
mod stage;

pub(super) use artifact::artifact;
pub(super) use cache::cache;
pub(super) use compare::compare;
pub(super) use data::data;
pub(super) use pipelines::{is_offered, pipelines};
pub(super) use policies::policies;
pub(super) use run::{LiveRunPage, run};
pub(super) use runs::{LiveRuns, Wanted, runs};
pub(super) use schedule::schedule;
pub(super) use stage::stage;
