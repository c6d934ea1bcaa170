//! The pipeline file, from text to a resolved task graph. The caller passes the stage kinds.
//!
//! The steps in order: `source` (bytes to text), `yaml` (text to a `tree` of values with positions),
//! `compose` (`include:`), `document` (keys and names checked), `overrides` (profiles and `--set`),
//! `reference` (stages and their points), `needs` (ports, order), `axes` with `sample` (the syntax of a
//! matrix) and `matrix` (its points), `interpolate` (`${…}`), `configure` (a stage kind's configuration) and
//! `load`, which calls all of them. `schedule` reads the block of that name. `memo` caches the result for an
//! unchanged pipeline; `resolved` writes a pipeline as one file; [`graph`] and [`svg`] draw it.
//!
//! Time and memory grow linearly with the stages. Inputs beyond these limits are rejected:
//!
//! | limit | |
//! | --- | --- |
//! | stages of a pipeline, matrices expanded; points of a stage | 100,000 |
//! | a pipeline file, or one that it includes | 16 MiB |
//! | included files | 64 |
//! | YAML values of a file, aliases followed | 500,000 |
//! | nested lists and maps | 48 |
//! | files of a `run:` stage | 10,000 |

mod axes;
mod command;
mod compose;
pub mod config_file;
mod configure;
mod connections;
mod describe;
mod describe_type;
mod document;
mod earlier;
mod encoding;
mod error;
mod files;
mod folds;
pub mod graph;
mod interpolate;
mod load;
mod matrix;
mod memo;
mod model;
mod needs;
mod notify;
mod output_types;
mod overrides;
mod place;
mod plain;
mod point;
mod problems;
mod python_interpreter;
mod python_stage;
mod reference;
mod registration;
mod resolved;
mod resolved_blocks;
mod run_stage;
mod sample;
mod schedule;
mod schema;
mod select;
mod shims;
mod source;
mod suggest;
pub mod svg;
mod task_graph;
mod tools;
mod track;
mod tree;
mod units;
mod yaml;

pub use command::{Command, Isolation, LOG_LIMIT, PythonCall, Shell, Tool};
pub use describe::{describe_kind, describe_kinds, kind_json, kinds_json};
pub use describe_type::{describe_type, type_json, types};
pub use earlier::{Earlier, EarlierRef, FindEarlier, FindTried, NotFound, RunRef};
pub use error::{PipelineError, PipelineErrors};
pub use interpolate::command_text;
pub use load::{LoadOptions, Names, load, load_text, load_with_sources, names, resolved, scheduled};
pub use memo::{load_memo, load_with_memo, memo_name};
pub use model::{InputRef, Node, Pipeline, Promote, Register, Resources, Work};
pub use notify::{Channel, Email, Notify, Occasion, Shape, Tls, Url};
pub use place::Place;
pub use plain::{is_plain_path, plain_path};
pub use python_stage::{describe_python, python_json};
pub use reference::{Select, parse_reference, same as same_value};
pub use schedule::{CatchUp, Cron, NightDates, Schedule, Scheduled, Then, WaitFor, When};
pub use schema::schema;
pub use select::{named, select};
pub use shims::{is_shim, program_behind};
pub use suggest::suggest;
pub use task_graph::TaskGraph;
pub use track::Track;
pub use units::duration;
