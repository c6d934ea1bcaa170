//! The pipeline file, from text to a resolved task graph. The caller passes the stage kinds.
//!
//! | folder | |
//! | --- | --- |
//! | `text/` | bytes to text, YAML to a tree of values with positions, typed values, `block` (mistakes in them, with position and hint) |
//! | `file/` | the file: `compose` (`include:`), `document` (keys and names), `overrides` (profiles and `--set`), the blocks beside the stages; `load`, which calls all steps; `resolved` writes a pipeline as one file |
//! | `matrix/` | the axes of a stage, and the points that they expand to |
//! | `stage/` | one stage: `reference` and `needs` (inputs, order), `interpolate` (`${…}`), the programs of `run:` and Python stages |
//! | `package/` | stage kinds of installed Python packages |
//! | `schedule/` | the block `schedule:` |
//! | `describe/` | stage kinds and types as text, the schema of pipeline files, [`graph`] and [`svg`] |
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

mod describe;
mod file;
mod matrix;
mod model;
mod package;
mod schedule;
mod select;
mod stage;
mod task_graph;
mod text;

pub use describe::describe_type::{describe_type, type_json, types};
pub use describe::kinds::{
    describe_kind, describe_kinds, describe_python, kind_json, kinds_json, python_json,
};
pub use describe::markdown::{escaped, kinds_markdown, pipeline_markdown};
pub use describe::schema::schema;
pub use describe::{graph, svg};
pub use file::config_file;
pub use file::description::description;
pub use file::load::{LoadOptions, Names, load, load_text, load_with_sources, names, resolved, scheduled};
pub use file::notify::{Channel, Email, MailAddress, MailServer, Notify, Occasion, Shape, Tls, Url};
pub use file::registration::CANDIDATE;
pub use file::search::{
    Budget, Constraint, Domain, MetricOf, Objective, Objectives, Pruner, Rungs, SamplerName, Search, Seeds,
    Values,
};
pub use file::track::{Mlflow, Otlp, Track};
pub use matrix::point::id as node_id;
pub use model::{
    First, Forward, HERE, InputRef, Node, Pipeline, Promote, Register, Resources, Work, graph_of,
};
pub use package::{DescribeKinds, LARGEST_DESCRIPTION, Packages, Prefix};
pub use schedule::{CatchUp, Cron, Keep, NightDates, Schedule, Scheduled, Then, WaitFor, When};
pub use select::{named, select};
pub use stage::command::{
    Check, Command, Isolation, LOG_LIMIT, OfPackage, PythonCall, Shell, Tool, Unrecorded,
};
pub use stage::earlier::{Earlier, EarlierRef, FindEarlier, FindTried, NotFound, RunRef};
pub use stage::interpolate::command_text;
pub use stage::reference::{Select, parse_reference, same as same_value};
pub use stage::shims::{find_program, is_shim, program_behind};
pub use task_graph::TaskGraph;
pub use text::error::{PipelineError, PipelineErrors};
pub use text::place::Place;
pub use text::plain::{is_plain_path, plain_path};
pub use text::suggest::suggest;
pub use text::typed::{Name, Variable};
pub use text::units::duration;
