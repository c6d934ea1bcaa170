//! `runner paper fills`.

use super::show::{money, read};
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use cache::regular_file;
use clap::{Args, ValueEnum};
use runner_engine::{Failure, row, text};
use runner_history::paper::{self, Entry, FillLayout, Ledger, Slippage, SlippageRow};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A layout of a file of fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Layout {
    /// CSV with the columns order, id, date, time, symbol, expiry, strike, right, quantity, price and
    /// commission.
    Runner,
    /// An Activity Flex statement of Interactive Brokers with the section Trades, XML or CSV.
    IbkrFlex,
    /// Account activities of Alpaca, JSON.
    AlpacaActivities,
}

impl From<Layout> for FillLayout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Runner => Self::Runner,
            Layout::IbkrFlex => Self::IbkrFlex,
            Layout::AlpacaActivities => Self::AlpacaActivities,
        }
    }
}

/// Report fills of a broker, and measure their slippage.
///
/// Each row of the file is a fill of an order of the account; one that is not, or was reported before,
/// refuses the file. Without a file, the slippage of the fills so far: against the model's fills and against
/// the mid at the decision, by instrument and by size.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper fills desk-paper fills.csv
  runner paper fills desk-paper flex.xml --layout ibkr_flex
  runner paper fills desk-paper activities.json
  runner paper fills desk-paper --json")]
pub(crate) struct PaperFillsArgs {
    /// The name of an account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
    /// The file of fills.
    pub file: Option<PathBuf>,
    /// The layout of the file [default: recognised by its contents].
    #[arg(long, value_enum)]
    pub layout: Option<Layout>,
}

pub(super) fn fills(session: &Session, args: &PaperFillsArgs) -> Result<(), Failure> {
    let home = session.home(None);
    let Some(file) = &args.file else {
        let ledger = read(&home, &args.name)?;
        return match session.json {
            true => output::print_json(&measured(&ledger)),
            false => output::print(&slippage(&ledger).unwrap_or_else(|| {
                format!("no fills: `runner paper fills {} FILE` reports the first\n", args.name)
            })),
        };
    };
    let bytes = regular_file::read(&session.current.join(file)).map_err(|err| {
        Failure::usage(format!("cannot read `{}`: {err}", file.display())).hint("name a file of fills")
    })?;
    let shown = file.display().to_string();
    // A name that does not exist makes no lock.
    read(&home, &args.name)?;
    let Some(_lock) = paper::lock(&home, &args.name)? else {
        return Err(Failure::machine(format!("the account `{}` is in use", args.name))
            .hint("another command adds to its ledger: try again when it has ended"));
    };
    let mut ledger = read(&home, &args.name)?;
    let found = ledger.read_fills(&shown, &bytes, args.layout.map(Into::into))?;
    let date = ledger.last_night().map_or(ledger.opened().from, |night| night.date);
    let count = found.fills.len();
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    ledger.append(vec![Entry::Fills {
        date,
        file: name.unwrap_or(shown),
        layout: found.layout.name().to_owned(),
        fills: found.fills,
    }])?;
    if session.json {
        let mut value = measured(&ledger);
        value["added"] = json!(count);
        value["left_out"] = json!(found.left_out);
        return output::print_json(&value);
    }
    let mut out = format!("{} added, layout {}\n", text::count(count, "fill"), found.layout);
    if found.left_out > 0 {
        out.push_str(&format!(
            "{} left out: not fills of executions\n",
            text::count(found.left_out, "row")
        ));
    }
    output::print(&(out + &slippage(&ledger).unwrap_or_default()))
}

/// The slippage of the reported fills, and each of them, as JSON.
fn measured(ledger: &Ledger) -> Value {
    let each: Vec<Value> = ledger
        .reported()
        .iter()
        .map(|reported| {
            json!({
                "fill": reported.fill,
                "mid": reported.order.mid,
                "model": reported.model,
                "matched": reported.matched,
                "booked": reported.is_booked,
                "difference": reported.difference().map(|booking| booking.cash),
            })
        })
        .collect();
    json!({
        "name": ledger.name(),
        "fills": each,
        "slippage": ledger.slippage(),
        "unmatched": ledger.unmatched(),
    })
}

/// The slippage of the reported fills as tables; `None` if there are none.
pub(super) fn slippage(ledger: &Ledger) -> Option<String> {
    let table = ledger.slippage()?;
    let rows: Vec<Vec<String>> = table
        .instruments
        .iter()
        .chain(&table.sizes)
        .chain([&table.all])
        .map(slippage_row)
        .collect();
    let head = [
        "fills of",
        "fills",
        "quantity",
        "commission",
        "worse than model",
        "bp",
        "half spreads",
        "than mid at decision",
        "bp",
        "half spreads",
    ];
    let mut out = text::block(&head, &rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let rows: Vec<Vec<String>> = ledger
        .unmatched()
        .into_iter()
        .map(|order| {
            row![
                order.order,
                order.of,
                text::figure(order.real),
                text::figure(order.model)
            ]
        })
        .collect();
    out.push_str(&text::block(
        &["unmatched order", "instrument", "broker", "model"],
        &rows,
        &[2, 3],
    ));
    Some(out)
}

fn slippage_row(of: &SlippageRow) -> Vec<String> {
    let cells = |slippage: Option<Slippage>| {
        let half = slippage.and_then(|slippage| slippage.half_spreads);
        [
            slippage.map(|slippage| money(slippage.currency)).unwrap_or_default(),
            slippage
                .map(|slippage| format!("{:.2}", slippage.basis_points))
                .unwrap_or_default(),
            half.map(|half| format!("{half:.3}")).unwrap_or_default(),
        ]
    };
    let mut row = row![of.of, of.fills, text::figure(of.quantity), money(of.commission)];
    row.extend(cells(of.model));
    row.extend(cells(of.decision));
    row
}
