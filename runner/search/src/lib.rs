//! Searches over the settings of a pipeline: the space, the proposals, the rungs, and what came of them.
//! A [`study`] says what to compute next, and is told what came of it; the [`driver`] adds that to a run.
//!
//! | module | |
//! | --- | --- |
//! | [`space`] | the settings that are searched |
//! | [`sampler`] | proposals of new trials from those before |
//! | [`study`] | the order of jobs: new trials, promotions to the next rung, the end |
//! | [`bench`] | the samplers on known functions |
//! | [`driver`] | the stages of a search in a run |
//! | [`record`] | the record of a search in the history |
//! | [`trials`], [`rungs`], [`importance`] | what is read off it: a row for each trial and each rung, the cost, the importance of settings |
//! | [`export`] | a study of Optuna, a table |

pub mod bench;
pub mod driver;
pub mod export;
pub mod importance;
pub mod record;
pub mod rungs;
pub mod sampler;
pub mod space;
pub mod study;
pub mod trials;

use serde_json::Value;
use std::collections::BTreeMap;

/// The settings of a trial by name. A setting whose condition does not hold is absent.
pub type Settings = BTreeMap<String, Value>;
