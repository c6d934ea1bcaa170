//! Closes by symbol and day, of files of bars that belong to other data.

use super::clean::{States, clean};
use super::rows::{CLOSE, collect, reading};
use crate::layout_choice::Chosen;
use crate::options::OnBadRows;
use crate::value::OUT_OF_RANGE;
use datasets::Date;
use datasets::layout::CalendarName;
use datasets::quality::{BARS, Tally};
use stages_core::{Context, Source, StageError};
use std::collections::BTreeMap;

/// The closes in files of bars, by symbol and day.
///
/// # Errors
/// When a file cannot be read.
pub fn closes(context: &Context, sources: &[Source]) -> Result<BTreeMap<String, BTreeMap<Date, f64>>, StageError> {
    let (files, _) = crate::read::tables(context, &reading(&Chosen::Auto, ""), sources)?;
    let mut bars = Vec::new();
    for (_, batch) in files {
        collect(&batch, |_, date| date != OUT_OF_RANGE, &mut bars)?;
    }
    let (mut states, mut tally) = (States::new(), Tally::new(BARS));
    clean(
        &mut bars,
        &OnBadRows::default(),
        CalendarName::None,
        &mut states,
        &mut tally,
    );
    let mut out: BTreeMap<String, BTreeMap<Date, f64>> = BTreeMap::new();
    for bar in bars {
        out.entry(bar.symbol.to_string())
            .or_default()
            .insert(bar.date, bar.values[CLOSE]);
    }
    Ok(out)
}
