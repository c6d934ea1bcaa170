//! Arguments of `runner data`.

use clap::{Args, Subcommand, ValueEnum};
use datasets::layout::Table;
use std::path::PathBuf;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// List the known layouts of vendors' files, or show one as YAML.
    #[command(after_help = "\
Examples:
  runner data layouts
  runner data layouts optionsdx > my_vendor.yaml   # then `layout: ./my_vendor.yaml` in a stage")]
    Layouts(LayoutsArgs),
    /// Show what files are taken for and why, and their contents.
    ///
    /// Also their quality, and the YAML of a stage that reads them.
    #[command(after_help = "\
Examples:
  runner data inspect data/spx_eod_202312.txt
  runner data inspect data/options --layout ./my_vendor.yaml
  runner data inspect unknown.csv      # proposes a mapping")]
    Inspect(InspectArgs),
    /// Read files as a stage would, and write Parquet of our schema.
    #[command(after_help = "\
Example:
  runner data convert data/options --to converted/")]
    Convert(ConvertArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LayoutsArgs {
    /// A layout's name.
    pub name: Option<String>,
}

/// A table that files are read into.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TableName {
    /// Option chains.
    Chain,
    /// Daily bars.
    Bars,
    /// Interest rates.
    Rates,
}

impl From<TableName> for Table {
    fn from(name: TableName) -> Self {
        match name {
            TableName::Chain => Self::Chain,
            TableName::Bars => Self::Bars,
            TableName::Rates => Self::Rates,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    /// A file, a directory or a glob.
    pub path: String,
    /// The layout: a name, or the path of a layout file [default: auto].
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<String>,
    /// The table to read, where the files fit several.
    #[arg(long = "as", value_name = "TABLE")]
    pub table: Option<TableName>,
    /// The symbol, for files that do not name it.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// The directory to write to.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InitArgs {
    /// Files, directories or globs of option chains, daily bars or interest rates, a path for each table
    /// [default: a simulated market].
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// The pipeline file to write. It must not exist.
    #[arg(long, value_name = "FILE", default_value = "pipeline.yaml")]
    pub to: PathBuf,
    /// The symbol, for files that do not name it.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}
