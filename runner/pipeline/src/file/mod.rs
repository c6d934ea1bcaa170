//! The pipeline file: includes, keys and names, profiles and `--set`, the blocks beside the stages, and the
//! loader that calls all steps.

pub(crate) mod compose;
pub mod config_file;
pub(crate) mod connections;
pub(crate) mod description;
pub(crate) mod document;
pub(crate) mod load;
mod meant;
pub(crate) mod notify;
pub(crate) mod overrides;
pub(crate) mod registration;
pub(crate) mod resolved;
pub(crate) mod search;
pub(crate) mod track;
