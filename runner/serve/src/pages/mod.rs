//! The pages, a module each.

mod artifact;
mod cache;
mod compare;
mod conditions;
mod data;
mod overview;
mod paper;
mod pipelines;
mod policies;
mod run;
mod runs;
mod schedule;
mod searches;
mod stage;

pub(crate) use artifact::{Part, artifact};
pub(crate) use cache::cache;
pub(crate) use compare::compare;
pub(crate) use data::{Days, data};
pub(crate) use overview::{LiveOverview, overview};
pub(crate) use paper::{paper, papers};
pub(crate) use pipelines::{is_offered, pipelines};
pub(crate) use policies::policies;
pub(crate) use run::{LiveRunPage, run};
pub(crate) use runs::{LiveRuns, Wanted, runs};
pub(crate) use schedule::schedule;
pub(crate) use searches::{LiveSearch, search, searches};
pub(crate) use stage::stage;
