//! From text to values with positions: the sources of errors, YAML, the tree of values, typed values, names
//! and units, and hints.

pub(crate) mod block;
pub(crate) mod error;
pub(crate) mod place;
pub(crate) mod plain;
pub(crate) mod problems;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod tree;
pub(crate) mod typed;
pub(crate) mod units;
pub(crate) mod yaml;

pub(crate) use block::Block;
pub(crate) use error::PipelineError;
pub(crate) use place::Place;
pub(crate) use plain::{is_plain_path, plain_words};
pub(crate) use problems::Problems;
pub(crate) use source::{Spot, Texts};
pub(crate) use suggest::{list, nearest, suggest};
pub(crate) use tree::{Key, Step, Tree, Value, follow, spell, steps};
pub(crate) use typed::{
    Checked, Name, Several, Size, Text, TextOr, Variable, Whole, Written, checked, keys, number,
    or_interpolation, several, some_number, some_text, text,
};
pub(crate) use units::{duration, is_name, is_variable, relative, size};
