//! Typed outputs of programs.
//!
//! Data sets: one Parquet or CSV file, or a directory of them, checked row by row against the schema of a
//! port type, sorted, cut as the built-in stages cut it, and stored as a data set of that type.
//!
//! | type | columns | key | checks |
//! | --- | --- | --- | --- |
//! | `features` | `symbol`, `date`, and one column of numbers or more; by contract also those of [`datasets::schema::CONTRACT`] or `contract`, the contract's symbol, and perhaps `snapshot` | symbol, date, or these and the contract | numbers are finite or missing |
//! | `table` | `date` or `snapshot` or both, `symbol` where there are several, and one column of numbers or more | symbol, date or instant | the same |
//! | `bars` | those of [`datasets::schema::BARS`]; `symbol`, `date` and `close` are required | symbol, date | and prices are above 0, high and low bound open and close, volume is not negative |
//! | `option_chain` | those of [`datasets::schema::OPTION_CHAIN`], and any of [`datasets::schema::stated`], `tradable`, `iv_status` and [`datasets::schema::CONTRACT_TERMS`] | symbol, date or instant, contract | and prices are not negative, bids not above asks, contracts not expired, the terms of a class the same in all rows |
//! | `greeks` | those of [`datasets::schema::GREEKS`] up to `call`, and any of the others | symbol, date or instant, contract | numbers are finite or missing |
//! | `rates` | `date`, `tenor_years`, `rate` | date, tenor | and rates are plausible |
//! | `corporate_actions` | those of [`datasets::schema::CORPORATE_ACTIONS`] | symbol, date, kind | each has what its kind needs |
//!
//! Nothing is repaired: `ingest/…` treats faulty data files by rules, whereas a program can be corrected. The
//! stored bytes depend on the rows alone, not on their order or the number of files.
//!
//! Other types: `metrics` are JSON ([`metrics`]); policies and environments are files that are checked by the
//! crates that read them ([`FileType`]).

mod chain;
mod checks;
mod columns;
mod csv;
mod data_set;
mod file;
mod inherited;
mod metrics;
mod of_contract;
mod order;
mod requirements;
mod rows;
#[cfg(test)]
mod tests;

use crate::error::StageError;
use crate::event::EventSink;
use crate::input::Input;
use crate::port::PortType;
use cache::{ArtifactDigest, Store};
pub use file::WrittenFile;
pub use requirements::{Requirements, requirements};
use std::collections::BTreeMap;

/// The types that a program can write.
pub const TYPES: [PortType; 10] = [
    PortType::Features,
    PortType::Table,
    PortType::Bars,
    PortType::OptionChain,
    PortType::Rates,
    PortType::CorporateActions,
    PortType::Greeks,
    PortType::Env,
    PortType::Policy,
    PortType::Metrics,
];

/// The version of the checks and the form of a type, part of the key of a stage that writes it: it rises
/// whenever the same files would give another data set. `None` for types that programs cannot write.
pub fn version(ty: PortType) -> Option<u32> {
    TYPES.contains(&ty).then_some(match ty {
        // 2: Greeks of big chains are cut by day.
        PortType::Greeks => 2,
        // 2: The terms of contracts come from the chains that the program was given.
        PortType::OptionChain => 2,
        _ => 1,
    })
}

/// Returns whether artifacts of a type are data sets, that is, partitioned tables.
pub fn is_data_set(ty: PortType) -> bool {
    !matches!(
        ty,
        PortType::Env
            | PortType::Policy
            | PortType::Metrics
            | PortType::Knowledge
            | PortType::Trajectory
            | PortType::File
    )
}

/// A type whose files are checked by the crate that reads them.
#[derive(Clone, Copy)]
pub struct FileType {
    /// The type.
    pub ty: PortType,
    /// Checks the files of an output, and stores them as an artifact of the type. The error names file and
    /// remedy.
    pub write: fn(&Store, &[WrittenFile]) -> Result<ArtifactDigest, StageError>,
}

/// Stores the files of a program as an artifact of type `ty`. `inputs` are the inputs of the program,
/// `others` the types that this crate does not know. `stop` is polled between files.
///
/// # Errors
/// When `stop` says so; when the files do not fit the type; or when the store cannot be written. The error
/// names file and row, and a remedy.
pub fn write(
    store: &Store,
    ty: PortType,
    files: &[WrittenFile],
    inputs: &BTreeMap<String, Vec<Input>>,
    others: &[FileType],
    stop: &dyn Fn() -> Result<(), StageError>,
    events: &dyn EventSink,
) -> Result<ArtifactDigest, StageError> {
    if is_data_set(ty) {
        return data_set::write(store, ty, files, inputs, stop, events);
    }
    stop()?;
    if ty == PortType::Metrics {
        return metrics::write(store, files, events);
    }
    match others.iter().find(|other| other.ty == ty) {
        Some(other) => (other.write)(store, files),
        None => Err(StageError::new(format!(
            "no program can write the type `{}`",
            ty.name()
        ))),
    }
}
