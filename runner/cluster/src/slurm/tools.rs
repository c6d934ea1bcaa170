//! The commands of Slurm: `sbatch`, `squeue`, `sacct`, `scancel` and `scontrol`, which run beside the driver.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time after which a command that has not ended is killed.
const DEADLINE: Duration = Duration::from_secs(120);

/// The maximum size of an answer that is read, in bytes.
const ANSWER: u64 = 64 << 20;

/// The variables of a Slurm job around this program, and of filters of the commands, by their prefix: they
/// would change what the commands do. The configuration's path stays.
const FOREIGN: [&str; 5] = ["SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_"];

/// The commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools {
    /// Their directory; PATH by default.
    pub directory: Option<PathBuf>,
}

impl Tools {
    /// A command. Its environment, which `sbatch` passes to the job, is this process's without Slurm's own
    /// variables and without the list of visible GPUs, which the node decides.
    pub(super) fn command(&self, name: &str) -> Command {
        let path = self
            .directory
            .as_ref()
            .map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
        let mut command = Command::new(path);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let is_foreign = FOREIGN.iter().any(|prefix| text.starts_with(prefix)) && text != "SLURM_CONF";
            if is_foreign || text == "CUDA_VISIBLE_DEVICES" {
                command.env_remove(&name);
            }
        }
        command
    }
}

/// A command in progress.
#[derive(Debug)]
pub(super) struct Call {
    child: Child,
    out: File,
    err: File,
    pub started: Instant,
}

/// The answer of a command.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub out: String,
    /// Its error, if it failed.
    pub error: Option<String>,
    pub started: Instant,
}

impl Call {
    /// Starts a command. Its output goes to files, so that no pipe fills.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let (out, err) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            .spawn()?;
        Ok(Self {
            child,
            out,
            err,
            started: Instant::now(),
        })
    }

    /// The answer, once the command has ended.
    pub(super) fn poll(&mut self) -> Option<Answer> {
        let status = match self.child.try_wait() {
            Ok(None) if self.started.elapsed() < DEADLINE => return None,
            Ok(None) => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                None
            }
            Ok(Some(status)) => Some(status),
            Err(_) => None,
        };
        let (out, err) = (read(&mut self.out), read(&mut self.err));
        let error = match status {
            None => Some(format!("did not answer within {} s", DEADLINE.as_secs())),
            Some(status) if status.success() => None,
            Some(status) => Some(match err.trim() {
                "" => status.to_string(),
                text => lines(text),
            }),
        };
        Some(Answer {
            out,
            error,
            started: self.started,
        })
    }
}

fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(ANSWER).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The complaint of a command, on one line.
fn lines(text: &str) -> String {
    let bare = |line: &str| {
        let (_, rest) = line.split_once("error: ").unwrap_or(("", line));
        rest.trim().to_owned()
    };
    text.lines().map(bare).collect::<Vec<_>>().join("; ")
}

/// True if a command failed because the controller is away or overloaded, or a limit on queued jobs is
/// reached: it may succeed later. Slurm tells it by its messages only.
pub(super) fn is_transient(error: &str) -> bool {
    const SIGNS: [&str; 15] = [
        "unable to contact",
        "timed out",
        "zero bytes",
        "connection",
        "connect failure",
        "temporarily",
        "communication",
        "did not answer",
        "standby",
        "submit limit",
        "submitjobs",
        "maxsubmit",
        "try again",
        "message receive failure",
        "munge",
    ];
    let error = error.to_lowercase();
    SIGNS.iter().any(|sign| error.contains(sign))
}

/// The text as one word of `sh`.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_told_from_those_that_stay() {
        let away = "sbatch: error: Unable to contact slurm controller (connect failure)";
        assert!(is_transient(away));
        assert!(is_transient(
            "Job violates accounting/QOS policy (job submit limit, user's size limits)"
        ));
        assert!(!is_transient("Invalid partition name specified"));
        assert_eq!(
            lines("sbatch: error: invalid partition: x\nsbatch: error: Batch job submission failed: No\n"),
            "invalid partition: x; Batch job submission failed: No"
        );
    }

    #[test]
    fn words_of_the_shell() {
        assert_eq!(quoted(Path::new("/a b/it's $HOME")), r"'/a b/it'\''s $HOME'");
        let script = format!("printf %s {}", quoted(Path::new("/a b/it's $HOME\n`x`")));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/a b/it's $HOME\n`x`");
    }
}
