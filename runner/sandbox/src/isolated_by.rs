//! The isolation in force for a program.

use serde::{Deserialize, Serialize};

/// The isolation in force for a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolated {
    /// The program has its own namespaces for users, mounts, processes, IPC, the host name and the network.
    Namespaces,
    /// Landlock limits access to files, and to the network as far as the system supports that.
    Landlock,
    /// The profile of macOS limits access to files and to the network.
    Seatbelt,
    /// The program runs in a container.
    Container,
    /// The program is not isolated.
    #[default]
    None,
}

impl Isolated {
    /// True if a program cannot write to its inputs, whatever their permissions, and sees its directory as
    /// `/stage`.
    pub fn has_own_root(self) -> bool {
        matches!(self, Self::Namespaces | Self::Container)
    }

    /// The isolation's name in events and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::Container => "container",
            Self::None => "none",
        }
    }
}
