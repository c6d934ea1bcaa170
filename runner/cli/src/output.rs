//! Standard output and standard error. Control characters of foreign text are shown as escapes here, at the
//! one place of printing. A closed pipe is not an error.

use runner_engine::{Failure, text};
use runner_report::reporter::Verbosity;
use serde::Serialize;
use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_while_open(text).map(drop)
}

/// [`print`] that returns false once the reader has closed the pipe.
pub(crate) fn print_while_open(text: &str) -> Result<bool, Failure> {
    write(&text::visible(text))
}

/// [`print`] of codes for the terminal, which only this program may write, and then of text.
pub(crate) fn redraw(codes: &str, text: &str) -> Result<bool, Failure> {
    write(&format!("{codes}{}", text::visible(text)))
}

/// [`print`] of a document that another program reads: byte for byte, unless it is shown on a terminal.
pub(crate) fn print_document(text: &str) -> Result<(), Failure> {
    match std::io::stdout().is_terminal() {
        true => print(text),
        false => write(text).map(drop),
    }
}

fn write(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(err) if err.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(err) => Err(unwritable(&err)),
    }
}

/// The failure of a command whose standard output cannot be written.
pub(crate) fn unwritable(err: &std::io::Error) -> Failure {
    Failure::caused("cannot write to standard output", err)
        .hint("free some disk space, or redirect it to another file")
}

/// Writes a value as one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|err| Failure::caused("cannot write the result as JSON", &err))?;
    print(&(text + "\n"))
}

/// Asks a question whose default answer is no; `None` if standard input is not a terminal.
pub(crate) fn confirm(question: &str) -> Result<Option<bool>, Failure> {
    let mut input = std::io::stdin().lock();
    if !input.is_terminal() {
        return Ok(None);
    }
    print(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    input
        .read_line(&mut answer)
        .map_err(|err| Failure::caused("cannot read standard input", &err))?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// Writes a line to standard error. There is no other place to tell that it cannot be written.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text::visible(line));
}

/// Writes a warning to standard error.
pub(crate) fn warn(text: &str) {
    say(&format!("warning: {text}"));
}

/// Messages on the progress of a command: on a terminal, and with `--verbose` elsewhere, too.
pub(crate) fn progress(verbosity: Verbosity) -> impl FnMut(&str) {
    let is_shown = match verbosity {
        Verbosity::Quiet => false,
        Verbosity::Normal => std::io::stderr().is_terminal(),
        Verbosity::Verbose => true,
    };
    move |what| {
        if is_shown {
            say(what);
        }
    }
}

/// Writes a file that must not exist; none is left behind where that fails.
pub(crate) fn write_new(path: &Path, shown: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed =
        |err: &std::io::Error| Failure::machine(format!("cannot write `{}`: {err}", shown.display()));
    let exists = || {
        Failure::usage(format!("`{}` already exists", shown.display()))
            .hint("name a file that does not exist")
    };
    let parent = path.parent().unwrap_or(Path::new("."));
    if path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    std::fs::create_dir_all(parent).map_err(|err| failed(&err))?;
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(|err| failed(&err))?;
    file.write_all(bytes)
        .and_then(|()| cache::flush(file.as_file()))
        .map_err(|err| failed(&err))?;
    file.persist_noclobber(path).map(drop).map_err(|err| {
        if err.error.kind() == ErrorKind::AlreadyExists {
            exists()
        } else {
            failed(&err.error)
        }
    })
}
