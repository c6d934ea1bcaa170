//! A small query language for runs: `status == done and evaluate.sharpe > 1`.
//!
//! ```text
//! expression  = all ("or" all)*
//! all         = one ("and" one)*
//! one         = "not" one | "(" expression ")" | key | key ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "~") value
//! key         = name | ("mean" | "sd" | "min" | "max" | "count") "(" name ")"
//! value       = number | text, quoted unless it is one plain word | date | duration | key with a dot in it
//! name        = id | status | pipeline | name | tag | kept | started | age | duration | params.X
//!             | STAGE.METRIC | STAGE.with.KEY | STAGE.status | STAGE.seconds
//! ```
//!
//! `STAGE` denotes all points of a matrix, `STAGE[seed=1]` some of them. A comparison holds if it holds for
//! any of them; `!=` is the negation of `==`. A run without the value satisfies no comparison (without a name
//! or tags it satisfies `!=`). A key alone holds if the run has it. `~` searches for a substring, ignoring
//! case. A date denotes its whole day (in UTC), a duration its seconds.
//!
//! `token` and `parse` produce an `expr`, `subject` returns the values of a run by name, `eval` combines the
//! two.

mod eval;
mod expr;
mod parse;
mod subject;
mod token;

pub use eval::Cell;
pub(crate) use eval::{has, matches, order, unknown, value};
pub(crate) use expr::Expr;
pub use expr::Key;
pub(crate) use parse::{expression, key, keys};
pub(crate) use subject::{Subject, Summaries};
pub(crate) use token::ParseError;
