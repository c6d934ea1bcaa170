//! The history of runs: a folder for each, in which `events.jsonl` is the only truth.
//!
//! ```text
//! HOME/runs/20261120T213045-k3f9/
//! ├── events.jsonl     every event with its time, a line each; locked while the run goes on
//! ├── pipeline.json    the resolved pipeline: configuration, needs and outputs of every stage
//! ├── report.html      the report
//! └── logs/            what `run:` stages that did not finish wrote
//! ```
//!
//! [`list`] and [`load`] read it; [`Writer`] writes it.

mod builder;
pub mod earlier;
mod id;
mod model;
mod past;
mod pipeline_file;
mod reader;
mod writer;

pub use id::{new_run, resolve};
pub use model::{Metric, Run, StageRun};
pub use past::PastRuns;
pub use pipeline_file::{ResolvedPipeline, ResolvedStage};
pub use reader::{ids, list, load};
pub use writer::Writer;
