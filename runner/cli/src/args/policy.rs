//! Arguments of `runner policy`.

use super::values::age;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum PolicyCommand {
    /// Decide: today's action of a policy from today's files.
    ///
    /// Also the orders that it means. Nothing is placed.
    ///
    /// The stages between the files and the policy's environment run again with the files, from the cache but
    /// for what is new. The policy plays from the first test date on, as a backtest does, and decides at the
    /// files' last moment; nothing after it is looked at. Observations are normalised as in training.
    /// docs/acting.md has the rules and the forms of files.
    #[command(after_help = "\
Examples:
  runner policy act latest/train --data today.csv
  runner policy act latest/train --data quotes=spx.csv --data rates=rates.csv --positions mine.csv
  runner policy act 'latest/train[seed=1]' --data prices.csv --replace --positions played --json
  runner policy act latest/train --data today.csv --max-age 30d --sample 7

Exit codes: 1 where the files or the age of the policy do not allow a decision; 2 where an argument is \
wrong.")]
    Act(PolicyActArgs),
    /// Write a trained policy as one file that other programs read.
    ///
    /// The tensors, their layout and a reader in NumPy are in docs/reading-policies.md.
    #[command(after_help = "\
Examples:
  runner policy export latest/train --format safetensors policy.safetensors
  runner policy export 'latest/train[seed=1].policy' --format numpy policy.npz
  runner policy export latest/train --format onnx policy.onnx")]
    Export(PolicyExportArgs),
    /// List the registered policies, or the versions of one.
    ///
    /// With their aliases; of one, also the moves of its aliases.
    #[command(after_help = "\
Examples:
  runner policy list
  runner policy list desk --json")]
    List {
        /// The name of a policy.
        name: Option<String>,
    },
    /// Show a registered policy: origin, training and evaluation.
    #[command(after_help = "\
Examples:
  runner policy show desk@champion
  runner policy show desk@3 --json")]
    Show {
        /// NAME@ALIAS or NAME@VERSION.
        policy: String,
    },
    /// Register the policy of a run under a name, as a new version.
    ///
    /// In a pipeline, `register: NAME` of a stage does it at the end of each run. A policy that is a version
    /// already stays that version.
    #[command(after_help = "\
Examples:
  runner policy register latest/train desk
  runner policy register 'baseline/train[seed=1]' desk --alias champion")]
    Register(PolicyRegisterArgs),
    /// Point an alias to a version.
    #[command(after_help = "\
Examples:
  runner policy promote desk@challenger
  runner policy promote desk@3 --to champion")]
    Promote(PolicyPromoteArgs),
    /// Point an alias to the version that it pointed to before.
    #[command(after_help = "\
Example:
  runner policy rollback desk")]
    Rollback(PolicyRollbackArgs),
    /// Compare two versions: parameters, settings and metrics.
    #[command(after_help = "\
Example:
  runner policy diff desk@champion desk@challenger")]
    Diff(PolicyDiffArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyRegisterArgs {
    /// RUN/STAGE of a training, or RUN/STAGE.OUTPUT.
    pub what: String,
    /// The name.
    pub name: String,
    /// Also point this alias to it.
    #[arg(long)]
    pub alias: Option<String>,
    /// The age from which on it may not act: the time from the last date that it was trained on to a
    /// decision. `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub max_age: Option<Duration>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyPromoteArgs {
    /// NAME@ALIAS or NAME@VERSION.
    pub policy: String,
    /// The alias.
    #[arg(long, value_name = "ALIAS", default_value = "champion")]
    pub to: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyRollbackArgs {
    /// The name of the policy.
    pub name: String,
    /// The alias.
    #[arg(long, default_value = "champion")]
    pub alias: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyDiffArgs {
    /// NAME@ALIAS or NAME@VERSION.
    pub policy: String,
    /// Another.
    pub other: String,
}

/// A format of an exported policy.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PolicyFormat {
    /// Tensors by name, and a JSON description of network and environment as metadata.
    Safetensors,
    /// The same as the arrays of an .npz file, for `numpy.load`.
    Numpy,
    /// The actor as a model, with normalisation inside and recurrent state as inputs and outputs.
    Onnx,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyExportArgs {
    /// RUN/STAGE of a training, RUN/STAGE.OUTPUT, NAME@ALIAS of a registered policy, or the digest of a
    /// policy.
    pub what: String,
    /// The format of the file.
    #[arg(long, value_enum)]
    pub format: PolicyFormat,
    /// The file to write to. It must not exist.
    pub dest: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyActArgs {
    /// RUN/STAGE of a training, RUN/STAGE.OUTPUT, or NAME@ALIAS of a registered policy.
    pub what: String,
    /// A file of today's data, or a directory or glob of them, for the stage that reads such files;
    /// repeatable. STAGE.SETTING=FILE for another setting than `path`. A file without a stage goes to the
    /// only one that can read it.
    #[arg(long, value_name = "[STAGE=]FILE", required = true)]
    pub data: Vec<String>,
    /// Read the files in place of the stages' own ones, not after them: for files that hold everything so
    /// far.
    #[arg(long)]
    pub replace: bool,
    /// The positions that are held: a file (CSV or JSON), `none`, or `played` for those that the policy would
    /// have, had it traded from the start on.
    #[arg(long, value_name = "FILE|none|played", default_value = "none")]
    pub positions: String,
    /// The cash that is held; by default that of the file, or the capital of the environment.
    #[arg(long, allow_negative_numbers = true)]
    pub cash: Option<f64>,
    /// The moment of the decision, `2024-01-19` or `2024-01-19T15:45:00Z`; by default the last one of the
    /// files.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
    /// The date from which on the policy plays, which builds up its memory and its account; by default its
    /// first test date.
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// The world (symbol) to decide in, where the environment has several.
    #[arg(long, value_name = "NAME")]
    pub world: Option<String>,
    /// Also draw an action with this seed; its orders are shown in place of those of the likeliest one.
    #[arg(long, value_name = "SEED")]
    pub sample: Option<u64>,
    /// Refuse a policy whose training ended longer before the decision: `30d`. By default the age that it was
    /// registered with.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub max_age: Option<Duration>,
}
