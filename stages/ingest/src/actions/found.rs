//! Splits inferred from prices: they are proposed, and never applied by themselves.

use crate::chain::{Chain, Rules, Seen, Styles};
use crate::options::OnBadRows;
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind, SplitRatio};
use datasets::layout::CalendarName;
use datasets::quality::{Action, CHAIN, Level, Shape, Tally};
use stages_core::dataset::DataSet;
use stages_core::{Context, StageError, table};

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

/// The splits that bars suggest: their jumps of the rule `split_jump` of `ingest/bars`.
pub(super) fn in_bars(context: &Context, bars: &DataSet) -> Result<Vec<CorporateAction>, StageError> {
    let mut found = Vec::new();
    for symbol in bars.symbols(&context.store)? {
        let Some(batch) = bars.read_symbol(&context.store, &symbol)? else {
            continue;
        };
        let dates = table::dates(&batch, "date")?;
        let [opens, closes, volumes] =
            ["open", "close", "volume"].map(|column| table::floats_or_nan(&batch, column));
        let (opens, closes, volumes) = (opens?, closes?, volumes?);
        let mut level = Level::default();
        for (i, date) in dates.into_iter().enumerate() {
            let jump = level.jump(date, opens[i], closes[i], volumes[i]);
            if let Some(Shape::Split(ratio)) = jump.map(|jump| jump.shape) {
                found.push(split(&symbol, date, ratio));
            }
            level.take(date, closes[i], volumes[i], jump.as_ref());
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
