//! The protocol between engine and supervisor, over the supervisor's control socket.
//!
//! For each program, the engine sends one byte with the descriptor of the program's log, then a [`Spec`], and
//! then commands of one byte. The supervisor answers with [`Said`]; after [`Said::Ended`] it waits for the
//! next program. End of file kills the program and ends the supervisor. Every JSON text is preceded by its
//! length.

use super::isolated_by::Isolated;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// The argument that runs this program as a server.
pub(crate) const SANDBOX: &str = "sandbox";

/// The command to send SIGTERM to every process of the program.
pub(super) const TERMINATE: u8 = b't';
/// The command to kill every process of the program.
pub(super) const KILL: u8 = b'k';

/// The maximum length of a text that is read, in bytes: a command line of the system's maximum length fits.
const LONGEST: u32 = 16 << 20;

/// Everything around a program that a supervisor prepares once for all programs that it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The isolation of the programs: none, their own namespaces (see [`super::tree`]), or
    /// [`super::landlock`]; on macOS none, or the profile of `sandbox-exec`.
    pub isolated: Isolated,
    /// If set, the programs stay in the host's network.
    pub network: bool,
    /// Read-only files and directories outside the system's own, at the same path inside.
    pub visible: Vec<PathBuf>,
    /// The control group in which the supervisor creates a group for its programs; `None` where limits cannot
    /// be enforced.
    pub group: Option<PathBuf>,
}

/// A program to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Spec {
    /// The program's surroundings, which are the same for all programs of a supervisor.
    pub surroundings: Surroundings,
    /// The directory of the stage on the host; `/stage` for an isolated program.
    pub stage: PathBuf,
    /// The memory limit of the program's family in bytes; requires a control group.
    pub memory: Option<u64>,
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The program's arguments, the first of which is its name.
    pub arguments: Vec<String>,
    /// The program's complete environment.
    pub env: BTreeMap<String, String>,
    /// The program's working directory.
    pub directory: PathBuf,
}

/// A message from a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    /// The program has been running for some milliseconds. The descendants of the process `pid` are its
    /// family.
    Started {
        /// The process above the family.
        pid: u32,
    },
    /// The program has exited with this status, as `waitpid(2)` reports it, and no process of its family is
    /// left.
    Ended {
        /// The wait status of the first process.
        status: i32,
        /// The programs that the family executed; `None` if they could not be observed.
        executed: Option<BTreeSet<PathBuf>>,
        /// True if the kernel killed a process of the family for exceeding the memory limit.
        out_of_memory: bool,
    },
    /// The program could not be started.
    Failed {
        /// The step and the system's reason.
        message: String,
    },
    /// The program's surroundings could not be prepared; the supervisor exits.
    Unprepared {
        /// The step and the system's reason.
        message: String,
    },
}

/// Writes a value as JSON, preceded by its length.
pub(super) fn write<T: Serialize>(to: &mut impl Write, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    let length = u32::try_from(text.len())
        .ok()
        .filter(|length| *length <= LONGEST)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // The frame is written at once, so that messages of several processes do not mix.
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend(text);
    to.write_all(&frame)
}

/// Reads a value written by [`write`].
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
