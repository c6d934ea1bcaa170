//! Descriptions: stage kinds and types as text, JSON and pages of the book, the schema of pipeline files,
//! drawings of the graph.

pub(crate) mod describe_type;
pub mod graph;
pub(crate) mod kinds;
pub(crate) mod markdown;
pub(crate) mod schema;
pub mod svg;
