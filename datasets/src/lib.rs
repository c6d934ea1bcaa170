//! Market data: its schemas and units, the layouts that vendors give it, the terms of contracts, data-quality
//! rules, dates and calendars.

pub mod adjusted;
pub mod calendar;
pub mod contract;
pub mod corporate_action;
pub mod date;
pub mod fact;
pub mod layout;
pub mod quality;
pub mod schema;
pub mod snapshot_time;
pub mod spelling;
mod words;

pub use date::{Date, DateRange};
pub use fact::{Fact, FactOrigin};
pub use snapshot_time::{SnapshotTime, TimeZone, parse_instant};
