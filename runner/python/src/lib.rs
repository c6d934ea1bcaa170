//! The native module `runner._native` of the Python package: environments and policies, by the code that
//! training and evaluation run. Everything else of the package is the program `runner`, which the wheel
//! holds.

mod buffer;
mod env;
mod error;
mod policy;

use pyo3::prelude::*;

/// Environments and policies of `runner`.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<env::Env>()?;
    module.add_class::<policy::Policy>()
}
