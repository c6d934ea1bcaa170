//! `runner paper costs`.

use super::show::read;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, row, text};
use runner_history::paper::{FEWEST_FILLS, Fit, KindCosts};

/// Fit the cost model to reported fills, and propose settings.
///
/// Prints the settings for the environment's `with:`, and each with its standard error and residual error.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper costs desk-paper
  runner paper costs desk-paper --json")]
pub(crate) struct PaperCostsArgs {
    /// The name of an account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
}

pub(super) fn costs(session: &Session, args: &PaperCostsArgs) -> Result<(), Failure> {
    let ledger = read(&session.home(None), &args.name)?;
    let fitted = ledger.fitted_costs();
    if fitted.is_empty() {
        return Err(Failure::usage(format!(
            "the account `{}` has too few fills to fit costs: {}",
            args.name,
            ledger.reported().len()
        ))
        .hint(format!(
            "it takes {FEWEST_FILLS} of options, of stocks, of the underlying or of positions; `runner paper \
            fills` reports them"
        )));
    }
    if session.json {
        let mut value = serde_json::json!(fitted);
        value["yaml"] = serde_json::json!(fitted.yaml());
        return output::print_json(&value);
    }
    let mut rows = Vec::new();
    for (kind, costs) in [
        ("option", fitted.option),
        ("underlying", fitted.underlying),
        ("stock", fitted.stock),
        ("position", fitted.position),
    ] {
        let KindCosts {
            share_of_spread,
            basis_points,
            commission,
            ..
        } = costs;
        for (what, fit) in [
            ("share of half the spread", share_of_spread),
            ("basis points", basis_points),
            ("commission each", commission),
        ] {
            let Some(Fit {
                value,
                error,
                residual,
                fills,
            }) = fit
            else {
                continue;
            };
            rows.push(row![
                kind,
                what,
                text::figure(value),
                text::figure(error),
                text::figure(residual),
                fills,
            ]);
        }
    }
    let head = ["of", "cost", "value", "standard error", "residual error", "fills"];
    output::print(&format!(
        "{}\n{}",
        fitted.yaml(),
        text::table(&head, &rows, &[2, 3, 4, 5])
    ))
}
