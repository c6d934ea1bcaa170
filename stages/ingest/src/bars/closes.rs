//! Closes by symbol and day from files of bars, for use with other data.

use super::clean::{States, clean};
use super::rows::{CLOSE, collect, reading};
use crate::layout_choice::Chosen;
use crate::options::{OnBadRows, is_there};
use datasets::Date;
use datasets::layout::CalendarName;
use datasets::quality::{BARS, Tally};
use stages_core::{Context, Source, StageError};
use std::collections::BTreeMap;

/// The closes in files of bars up to `until`, by symbol and day.
pub fn closes(
    context: &Context,
    sources: &[Source],
    until: Option<Date>,
) -> Result<BTreeMap<String, BTreeMap<Date, f64>>, StageError> {
    let (files, _) = crate::read::tables(context, &reading(&Chosen::Auto, ""), sources, until)?;
    let mut bars = Vec::new();
    for (_, batch) in files {
        collect(&batch, |_, date| is_there(date, until), &mut bars)?;
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
