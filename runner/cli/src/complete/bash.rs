//! The completion of Bash, which splits words at `=` and `:`: `train[seed=1]` and `--set seed=1` are joined
//! again here.

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::EnvCompleter;
use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

/// The function and its registration, for Bash 3.2 (macOS) and later.
const SCRIPT: &str = r#"_runner() {
    local line=${COMP_LINE:0:COMP_POINT} words=() n=0 i part rest reply cut=
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        part=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then part=$rest; fi
        if ((i == 0)) || [[ $rest != "$line" ]]; then
            words[n]=$part
            n=$((n + 1))
        else
            words[n - 1]+=$part
        fi
        line=${rest#"$part"}
    done
    part=${words[n - 1]}
    # Readline replaces what comes after the last `=` or `:` of a word without quotes.
    if [[ $part != [\"\']* && $part == *[=:]* ]]; then cut=${part%"${part##*[=:]}"}; fi
    for ((i = 0; i < n; i++)); do
        part=${words[i]//\\/}
        part=${part#[\"\']}
        words[i]=${part%[\"\']}
    done
    COMPREPLY=()
    while IFS= read -r reply; do
        COMPREPLY+=("${reply#"$cut"}")
    done < <(_CLAP_COMPLETE_INDEX=$((n - 1)) VARIABLE=bash "$1" -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:.] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _runner NAME
"#;

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
