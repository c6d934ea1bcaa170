//! The treatment of rows that break the rules of [`datasets::quality`]: actions by rule, limits on dropped
//! rows, and reports.

mod by_rule;
mod on_bad_rows;
mod treatment;

pub use on_bad_rows::MaxDropped;
pub use on_bad_rows::OnBadRows;
pub use treatment::Treatment;

use datasets::quality::Rule;

/// The unit in which violations of a rule are counted.
fn unit(rule: &Rule) -> &'static str {
    match rule.name {
        "missing_day" | "hole" | "strike_jump" | "price_jump" | "unit_change" => "days",
        _ => "rows",
    }
}
