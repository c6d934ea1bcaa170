//! The dependencies of a user's Python, found without starting an interpreter: the modules that it imports
//! from its project, and the installed packages with their entry points.

mod entry_points;
mod imports;
mod packages;

pub use entry_points::{EntryPoint, entry_points, package_files};
pub use imports::imported;
pub use packages::{installed_packages, package_records, site_directories};
