//! A small language to choose among runs: `status == done and evaluate.sharpe > 1`.
//!
//! ```text
//! expression  = all ("or" all)*
//! all         = one ("and" one)*
//! one         = "not" one | "(" expression ")" | key | key ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "~") value
//! key         = name | ("mean" | "sd" | "min" | "max" | "count") "(" name ")"
//! value       = number | text, in quotes where it is not one plain word | date | duration | key with a dot in it
//! name        = id | status | pipeline | name | tag | kept | started | age | duration | params.X
//!             | STAGE.METRIC | STAGE.with.KEY | STAGE.status | STAGE.seconds
//! ```
//!
//! `STAGE` stands for all points of a matrix, `STAGE[seed=1]` for some. A comparison holds when it holds for any of them; `!=`
//! is the opposite of `==`. A run without the value fits no comparison (without a name or tags it fits `!=`). A key alone holds
//! where the run has it. `~` looks for a part of a text, upper and lower case alike. A date stands for its whole day (in UTC), a
//! duration for seconds.
//!
//! `token` and `parse` read it into an `expr`, `subject` says what a name stands for in a run, `eval` puts both together.

mod eval;
mod expr;
mod parse;
mod subject;
mod token;

pub use eval::{Cell, has, matches, order, unknown, value};
pub use expr::{Expr, Key};
pub use parse::{expression, key, keys};
pub use subject::{Subject, Summaries, Value};
pub use token::ParseError;
