//! Standard output. A closed pipe is not an error.

use runner_engine::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(err) if err.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::caused("cannot write to standard output", &err))
        }
        _ => Ok(()),
    }
}

/// Writes a value as one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|err| Failure::caused("cannot write the result as JSON", &err))?;
    print(&(text + "\n"))
}
