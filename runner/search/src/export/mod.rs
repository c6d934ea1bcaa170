//! Searches for other programs: a study of Optuna, a table.

mod csv;
mod optuna;

pub use csv::csv;
pub use optuna::journal;
