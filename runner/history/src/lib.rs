//! The history of runs: a directory for each run, whose event log `events.jsonl` is the single source of
//! truth.
//!
//! ```text
//! HOME/runs/20261120T213045-k3f9/
//! ├── events.jsonl     the event log: every event with its time, a line each; locked while the run is running
//! ├── pipeline.json    the resolved pipeline: configuration, needs and outputs of every stage
//! ├── brief.json       both without metrics, made again where it is missing or older
//! ├── process.json     the number of its process
//! ├── marks.json       its name, its tags and the keep mark, if given
//! ├── report.html      the report, once rendered
//! ├── metrics/         the metrics of stages that ran, a file of JSON lines each
//! ├── tensorboard/     the same as TensorBoard event files, a directory each, with the settings as hyperparameters
//! └── logs/            the logs of `run:` stages that did not finish
//! HOME/schedule/NAME.jsonl the nights of a scheduled pipeline: see [`schedule`]
//! HOME/trials.jsonl        the policies that were evaluated, and on what: see [`trials`]
//! HOME/paper/NAME.jsonl    the ledger of a paper account: see [`paper`]
//! HOME/searches/ID.jsonl   the decisions and results of searches, which `runner-search` writes
//! ```
//!
//! [`survey`], [`last`] and [`load`] read runs, [`Follower`] reads a run in progress, and [`Writer`] writes
//! a run; people set [`marks`]; [`figures`] are the metrics of a run's stages.

mod builder;
pub mod compare;
mod computed;
mod decision;
pub mod document;
pub mod earlier;
pub mod figures;
mod find;
mod follow;
mod id;
mod library;
mod logs;
pub mod marks;
mod model;
pub mod named;
pub mod paper;
mod past;
mod pipeline_file;
pub mod policies;
mod process;
mod query;
mod reader;
mod retention;
pub mod schedule;
pub mod trials;
mod writer;

pub use builder::Builder;
pub use computed::ComputedMetrics;
pub use decision::{THEN, add_account, add_decision};
pub use figures::Figures;
pub use find::find_stage;
pub use follow::Follower;
pub use id::{new_run, resolve};
pub use library::{Chosen, Library, Question};
pub use logs::{LogFollower, log_file, tail};
pub use marks::{AllMarks, Marks};
pub use model::{LastMetrics, Metric, Run, StageRun, Warning};
pub use named::Archive;
pub use past::PastRuns;
pub use pipeline_file::{ResolvedPipeline, ResolvedStage, Settings};
pub use process::process;
pub use query::{Cell, Key};
pub use reader::{last, list, load, resolved_pipeline, survey};
pub use retention::{removable, remove, size};
pub use writer::Writer;
