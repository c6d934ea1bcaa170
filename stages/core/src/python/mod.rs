//! The dependencies of a user's Python, found without starting an interpreter: the modules that it imports
//! from its project, and the installed packages.

mod imports;
mod packages;

pub use imports::imported;
pub use packages::{installed_packages, package_records, site_directories};
