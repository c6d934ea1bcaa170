//! The isolation of a program in force.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The isolation in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolated {
    /// Namespaces of its own for users, mounts, processes, IPC, the host's name and the network.
    Namespaces,
    /// Limits of file access, and of the network as far as the system has them.
    Landlock,
    /// A container.
    Container,
    /// None.
    #[default]
    None,
}

impl Isolated {
    /// True if a program cannot write to its inputs, whatever their permissions, and sees its directory as
    /// `/stage`.
    pub fn has_own_root(self) -> bool {
        matches!(self, Self::Namespaces | Self::Container)
    }

    /// Its name in events and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Container => "container",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Isolated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
