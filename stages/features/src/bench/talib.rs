//! TA-Lib in an interpreter of Python, whose calls are timed beside the indicators here.

use super::columns::Panel;
use stages_core::StageError;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SCRIPT: &str = include_str!("talib.py");

/// An interpreter that has the bars of a panel and TA-Lib.
pub(super) struct Talib {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Talib {
    /// Starts an interpreter: a program, or the directory of an environment.
    ///
    /// # Errors
    /// When the interpreter does not start, or lacks TA-Lib or NumPy.
    pub(super) fn start(python: &str, panel: &Panel) -> Result<Self, StageError> {
        let failed = |err: std::io::Error| StageError::new(format!("`{python}` does not start: {err}"));
        let environment = Path::new(python).join("bin/python");
        let program = if environment.exists() {
            &environment
        } else {
            Path::new(python)
        };
        let mut child = Command::new(program)
            .args(["-c", SCRIPT])
            .args([panel.data.len(), panel.bars()].map(|count| count.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(calls), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(silent(python));
        };
        let answers = BufReader::new(answers);
        let mut talib = Self { child, calls, answers };
        for bars in &panel.data {
            for column in [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume] {
                let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_ne_bytes()).collect();
                talib.calls.write_all(&bytes).map_err(|_| silent(python))?;
            }
        }
        match talib.answer() {
            Some(_) => Ok(talib),
            None => Err(silent(python)),
        }
    }

    /// The nanoseconds that a call takes for each symbol; `None` if the interpreter fails.
    pub(super) fn time(&mut self, call: &str) -> Option<Vec<f64>> {
        writeln!(self.calls, "{call}").and_then(|()| self.calls.flush()).ok()?;
        self.answer()?
            .split_whitespace()
            .map(|spent| spent.parse().ok())
            .collect()
    }

    fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        (!line.is_empty()).then_some(line)
    }
}

impl Drop for Talib {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn silent(python: &str) -> StageError {
    StageError::new(format!("`{python}` does not answer with TA-Lib's version"))
        .hint(format!("`{python} -m pip install TA-Lib` installs TA-Lib and NumPy"))
}
