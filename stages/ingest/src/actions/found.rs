//! Splits inferred from prices: they are proposed, and never applied by themselves.

use crate::chain::{Chain, Rules, Seen, Styles};
use crate::options::OnBadRows;
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind, SplitRatio};
use datasets::layout::CalendarName;
use datasets::quality::{Action, CHAIN, Tally};
use stages_core::dataset::DataSet;
use stages_core::{Context, StageError, table};

/// The smallest price ratio between two closes that counts as a split.
const LEAST_MOVE: f64 = 1.4;

fn split(symbol: &str, date: Date, ratio: SplitRatio) -> CorporateAction {
    CorporateAction {
        symbol: symbol.to_owned(),
        date,
        kind: Kind::Split,
        ratio: ratio.value(),
        amount: f64::NAN,
        new_symbol: String::new(),
        origin: "found".to_owned(),
    }
}

/// The splits that closes of bars suggest: the ratio of two consecutive closes is at least 1.4 (or at most 1
/// / 1.4) and within 5 % of a common split ratio.
pub(super) fn in_bars(context: &Context, bars: &DataSet) -> Result<Vec<CorporateAction>, StageError> {
    let mut found = Vec::new();
    for symbol in bars.symbols(&context.store)? {
        let Some(batch) = bars.read_symbol(&context.store, &symbol)? else {
            continue;
        };
        let dates = table::dates(&batch, "date")?;
        let closes = table::floats_or_nan(&batch, "close")?;
        for i in 1..closes.len() {
            let move_ = closes[i - 1] / closes[i];
            let large = !(1.0 / LEAST_MOVE..LEAST_MOVE).contains(&move_);
            if let Some(ratio) = SplitRatio::near(move_, 0.05).filter(|_| large) {
                found.push(split(&symbol, dates[i], ratio));
            }
        }
    }
    Ok(found)
}

/// The splits that strikes and prices of an option chain suggest, by the rules of `ingest/option_chain`.
pub(super) fn in_chain(context: &Context, data: &DataSet) -> Result<Vec<CorporateAction>, StageError> {
    let (mut seen, mut tally) = (Seen::default(), Tally::new(CHAIN));
    let bad = OnBadRows::all(Action::Keep);
    let rules = Rules {
        bad: &bad,
        calendar: CalendarName::None,
        styles: &Styles::default(),
        quoted: true,
        counted: false,
        tick: 0.0,
        actions: &[],
    };
    let mut found = Vec::new();
    for partition in &data.partitions {
        context.check_cancelled()?;
        let mut chain = Chain::default();
        chain.append(&partition.read(&context.store)?, true)?;
        for (symbol, date, ratio) in rules.jumps(&chain, &mut seen, &mut tally) {
            found.push(split(&symbol, date, ratio));
        }
    }
    Ok(found)
}
