//! The interface of the check: the stages that are checked, and the settings.

use super::dates::Wanted;
use cache::Store;
use datasets::Date;
use runner_engine::{Control, Options};
use runner_pipeline::Pipeline;
use stages_core::typed_output::FileType;

/// The settings of the check.
#[derive(Default)]
pub struct Settings {
    /// The dates after which data is changed; if empty, they are chosen.
    pub at: Vec<Date>,
    /// The confidence with which dates are chosen.
    pub wanted: Wanted,
    /// Stages (`stage`) and outputs (`stage.output`) that are not compared.
    pub except: Vec<String>,
}

/// The stages that are checked, and what their runs need.
#[derive(Clone, Copy)]
pub struct Stages<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The indices of the checked stages.
    pub chosen: &'a [usize],
    /// The store of the run on the original data; the runs on changed data have temporary stores.
    pub store: &'a Store,
    /// The file types written by programs that crates other than `stages-core` validate.
    pub file_types: &'static [FileType],
    /// The options of the runs.
    pub options: &'a Options,
    /// The cancellation of the runs.
    pub control: &'a Control,
}
