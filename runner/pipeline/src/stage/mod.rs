//! One stage: its inputs, its interpolations, the configuration of a stage kind, and the program of a `run:`
//! or Python stage.

pub(crate) mod command;
pub(crate) mod configure;
pub(crate) mod earlier;
pub(crate) mod files;
pub(crate) mod interpolate;
pub(crate) mod needs;
pub(crate) mod output_types;
pub(crate) mod python_interpreter;
pub(crate) mod python_stage;
pub(crate) mod reference;
pub(crate) mod run_stage;
pub(crate) mod setting;
pub(crate) mod shims;
pub(crate) mod tools;
pub(crate) mod written;
