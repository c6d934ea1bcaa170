//! The interface of stages: the [`StageKind`] trait, typed ports, the [`Context`] that a stage runs in, the
//! events that it emits, and the tables passed between stages ([`dataset`]).
//!
//! Functions that read the store or a table fail when an artifact or a column that they need is missing,
//! damaged or of another type; other errors are documented where they occur.

pub mod context;
pub mod contracts;
pub mod corporate_actions;
pub mod dataset;
pub mod error;
pub mod event;
pub mod features;
pub mod flat;
pub mod input;
pub mod kind;
pub mod memo;
mod names;
pub mod periods;
pub mod port;
pub mod python;
pub mod read;
pub mod row_digest;
pub mod schedule;
pub mod settings;
pub mod table;
mod tested;
pub mod typed_output;
pub mod visible;

pub use context::{CancelToken, Context, RunParts};
pub use error::{ConfigProblem, StageError};
pub use event::{EventSink, StageEvent};
pub use input::{Input, Source};
pub use kind::{AnyStage, Outputs, Package, RelativeCost, StageKind, erase};
pub use memo::{Given, Memo, MemoLog, Share, memo_key};
pub use periods::{LEAST_OBSERVATIONS, PeriodsAYear};
pub use port::{InputPort, OutputPort, PlanContext, Planned, PortType, Ports, Provided};
pub use read::Mistake;
pub use schedule::Schedule;
pub use settings::{Settings, is_default};
pub use tested::{TestPart, Tested};
