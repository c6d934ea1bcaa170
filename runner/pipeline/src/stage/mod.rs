//! One stage: its inputs, its interpolations, the configuration of a stage kind, and the program of a `run:`
//! or Python stage.

pub(crate) mod command;
pub(crate) mod earlier;
pub(crate) mod face;
pub(crate) mod files;
pub(crate) mod interpolate;
pub(crate) mod keys;
pub(crate) mod needs;
pub(crate) mod output_types;
pub(crate) mod python_stage;
pub(crate) mod reference;
pub(crate) mod run_stage;
pub(crate) mod setting;
pub(crate) mod shims;
pub(crate) mod tools;
pub(crate) mod written;

pub(crate) use command::Command;
pub(crate) use earlier::{Earlier, OfPipeline, OfPolicy, This};
pub(crate) use face::{Face, faces};
pub(crate) use interpolate::{Scope, fill, fill_command};
pub(crate) use keys::{Common, KEYS, OF_KIND};
pub(crate) use needs::{Collect, Connector, Needs, Reference};
pub(crate) use reference::parse_reference;
pub(crate) use setting::{Given, Setting};
pub(crate) use tools::Finder;
pub(crate) use written::{Job, Output, Program, Stage, USES};
