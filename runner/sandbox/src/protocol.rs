//! The protocol between engine and supervisor, over the supervisor's control socket.
//!
//! For each program the engine sends a byte with the descriptor of its log, a [`Spec`], and then commands of
//! one byte. The supervisor answers with [`Said`]; after [`Said::Ended`] it waits for the next program. End
//! of file kills the program and ends the supervisor. Every JSON text is preceded by its length.

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

/// The longest text that is read: a command line of the system's maximum length fits.
const LONGEST: u32 = 16 << 20;

/// Everything around a program that a supervisor prepares once, for all programs that it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The isolation of programs: none, namespaces of their own (see [`super::tree`]), or
    /// [`super::landlock`].
    pub isolated: Isolated,
    /// If set, they stay in the host's network.
    pub network: bool,
    /// Read-only files and directories outside the system's own, at the same path inside.
    pub visible: Vec<PathBuf>,
    /// The control group in which the supervisor creates one for them; `None` where their limits cannot be
    /// enforced.
    pub group: Option<PathBuf>,
}

/// A program to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Spec {
    /// The same for all programs of a supervisor.
    pub surroundings: Surroundings,
    /// The directory of the stage on the host; `/stage` for an isolated program.
    pub stage: PathBuf,
    /// The limit of the memory of its family in bytes; needs a group.
    pub memory: Option<u64>,
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<String>,
    /// Its complete environment.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub directory: PathBuf,
}

/// A message of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    /// The program runs for some milliseconds. The processes below this one are its family.
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
        /// True if the kernel killed one of its processes for exceeding the limit of the memory.
        out_of_memory: bool,
    },
    /// The program could not be started.
    Failed {
        /// The step and the system's reason.
        message: String,
    },
    /// Its surroundings could not be prepared: the supervisor exits.
    Unprepared {
        /// The step and the system's reason.
        message: String,
    },
}

/// Writes a value with its length.
pub(super) fn write<T: Serialize>(to: &mut impl Write, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    let length = u32::try_from(text.len())
        .ok()
        .filter(|length| *length <= LONGEST)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // One write, so that messages of several processes do not mix.
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend(text);
    to.write_all(&frame)
}

/// Reads a value.
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
