//! The completion of Bash, which splits words at `=` and `:`: `train[seed=1]` and `--set seed=1` are joined
//! again here.

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::EnvCompleter;
use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

/// The function and its registration, for Bash 3.2 (macOS) and later.
const SCRIPT: &str = include_str!("completion.bash");

/// Bash.
pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        var: &str,
        _: &str,
        bin: &str,
        _: &str,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        out.write_all(SCRIPT.replace("VARIABLE", var).replace("NAME", bin).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        current: Option<&Path>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let index = super::index(args.len());
        for candidate in complete(command, args, index, current)? {
            writeln!(out, "{}", candidate.get_value().to_string_lossy())?;
        }
        Ok(())
    }
}
