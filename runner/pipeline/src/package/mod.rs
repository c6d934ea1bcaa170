//! Stage kinds that installed Python packages bring, by entry points of the group `runner.stages`.
//!
//! | module | |
//! | --- | --- |
//! | `find` | the package of a prefix, and the node that describes its kinds |
//! | `description` | what a package says of its kinds, checked: none of it is trusted |
//! | `settings` | the settings of a kind, checked against their JSON Schema |

mod description;
mod find;
mod settings;

pub use find::{DescribeKinds, LARGEST_DESCRIPTION, Packages, Prefix};
pub(crate) use find::{Kinds, NoKinds};
