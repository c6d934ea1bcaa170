//! The history of runs: a folder for each, in which `events.jsonl` is the only truth.
//!
//! ```text
//! HOME/runs/20261120T213045-k3f9/
//! ├── events.jsonl     every event with its time, a line each; locked while the run goes on
//! ├── pipeline.json    the resolved pipeline: configuration, needs and outputs of every stage
//! ├── marks.json       its name, its tags and whether to keep it, where people gave it any
//! ├── report.html      the report
//! ├── metrics/         the metrics of stages that ran, a file of JSON lines each
//! ├── tensorboard/     the same, a folder of TensorBoard's event files each
//! └── logs/            what `run:` stages that did not finish wrote
//! ```
//!
//! [`survey`], [`brief`] and [`load`] read it, [`Follower`] while it goes on; [`Writer`] writes it; [`marks`] are people's; [`figures`] are what its stages
//! measured.

mod builder;
pub mod compare;
mod computed;
pub mod earlier;
pub mod figures;
mod follow;
mod id;
pub mod index;
pub mod marks;
mod model;
mod past;
mod pipeline_file;
pub mod query;
mod reader;
mod retention;
mod stored;
mod writer;

pub use computed::{ComputedMetrics, index_run};
pub use figures::Figures;
pub use follow::Follower;
pub use id::{new_run, resolve};
pub use marks::{AllMarks, Marks};
pub use model::{LastMetrics, Metric, Run, StageRun};
pub use past::PastRuns;
pub use pipeline_file::{ResolvedPipeline, ResolvedStage, Settings};
pub use reader::{last, list, load, survey};
pub use retention::{droppable, remove, size};
pub use writer::Writer;
