//! Stages that read market data.
//!
//! Files in any known layout ([`datasets::layout`]), or in one that the pipeline file describes, become
//! tables of [`datasets::schema`]. The steps for a file: [`files`] finds it, [`unpack`] opens gzip, zstd,
//! zip and workbooks and makes texts UTF-8 lines (`plain_text`), [`layout_choice`] determines its layout,
//! `form` turns JSON and other forms into plain tables, [`frame`] reads the columns (all with
//! [`stages_table_file`]; numbers by `number`, dates by `date_formats`), and the stage's own module converts
//! them and applies the rules of [`datasets::quality`]. What is found about how a file is written is told by
//! `notes`. The table of a file is cached under the digest of its bytes, so only new files are read. Rows
//! are sorted before anything depends on them, so it does not matter how they were spread over files. Large
//! files are read in parts (`large`), and chains are made partition by partition ([`chain`]).

pub mod actions;
pub mod bad_rows;
pub mod bars;
mod bench;
pub mod chain;
mod clock;
mod column_names;
pub mod cuts;
mod date_formats;
pub mod features;
mod file_memo;
pub mod files;
mod finder;
mod foreign;
mod form;
pub mod frame;
mod header;
pub mod inspect;
mod large;
pub mod layout_choice;
mod missing_days;
mod notes;
mod number;
pub mod options;
mod plain_text;
pub mod propose;
mod rates;
pub mod read;
mod remedy;
pub mod simulated_market;
pub mod simulated_panel;
mod symbol_header;
pub mod table;
mod table_input;
mod text_settings;
pub mod unpack;
pub mod value;
mod whose;
mod workbook;

pub use bench::{BenchRow, SyntheticChain, bench, bench_chain};
pub use whose::name_of_nobody;

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(simulated_market::SimulatedMarket),
        stages_core::erase(simulated_panel::SimulatedPanel),
        stages_core::erase(chain::OptionChain),
        stages_core::erase(bars::Bars),
        stages_core::erase(features::Features),
        stages_core::erase(table::Table),
        stages_core::erase(rates::Rates),
        stages_core::erase(actions::CorporateActions),
    ]
}
