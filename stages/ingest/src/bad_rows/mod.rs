//! The treatment of rows that break the rules of [`datasets::quality`]: actions by rule, the loss that is
//! allowed, and its report.

mod by_rule;
mod max_dropped;
mod on_bad_rows;
mod treatment;

pub use max_dropped::MaxDropped;
pub use on_bad_rows::OnBadRows;
pub use treatment::Treatment;

use datasets::quality::Rule;

/// The unit that a rule counts in.
fn unit(rule: &Rule) -> &'static str {
    match rule.name {
        "missing_day" | "hole" | "strike_jump" | "price_jump" => "days",
        _ => "rows",
    }
}
