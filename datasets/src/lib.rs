//! What market data is: its schemas, its units, the layouts that vendors give it, the rules that good data keeps, and a
//! market simulator. No polars here.

pub mod calendar;
pub mod date;
pub mod layout;
pub mod quality;
pub mod schema;
pub mod simulate;

pub use date::{Date, DateRange};
