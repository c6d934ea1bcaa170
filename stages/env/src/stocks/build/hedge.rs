//! The instrument that hedges, date by date, and the betas of symbols to it.

use super::panel::{Symbol, checked, ratio};
use super::source::{HedgeBars, PanelSource, SymbolBars};
use crate::adjustment::adjustments;
use crate::hedge;
use crate::stocks::config::{FillAt, StockFills, StocksConfig};
use crate::stocks::hedge::LEAST_RETURNS;
use crate::stocks::tables::{Event, HedgeQuote, Panel, status};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;
use std::collections::VecDeque;

/// Fills a panel's columns of the hedge; none without one.
pub(super) fn add(
    panel: &mut Panel,
    events: &[Event],
    source: &PanelSource,
    config: &StocksConfig,
) -> Result<(), StageError> {
    if config.hedge.is_none() {
        return Ok(());
    }
    let dates: Vec<Date> = panel.dates.iter().copied().map(Date).collect();
    let quotes = match &source.hedge {
        Some(HedgeBars::Symbol(bars)) => symbol_quotes(bars, source, config, &dates)?,
        Some(HedgeBars::Future(bars)) => {
            let times: Vec<SnapshotTime> = dates.iter().copied().map(SnapshotTime::of_day).collect();
            let prices = hedge::prices(bars, &times)?;
            StageError::new("the bars at `future` have no open")
                .hint("set fills: { at: close }")
                .when(
                    config.fills.at == FillAt::NextOpen && prices.iter().all(|price| price.open.is_nan()),
                )?;
            prices.into_iter().map(future_quote).collect()
        }
        None => {
            return Err(StageError::new(format!(
                "there are no bars of `{}`, which hedges",
                config.hedge.instrument
            ))
            .hint("name a symbol of the bars at hedge.instrument"));
        }
    };
    if config.hedge.has_betas() {
        panel.beta = betas(panel, events, &quotes, config.hedge.window as usize);
    }
    panel.hedge = bytemuck::cast_slice(&quotes).to_vec();
    Ok(())
}

/// The quotes of a symbol, which is halted, delisted and changed by corporate actions as those of the
/// portfolio, and traded whatever its volume.
fn symbol_quotes(
    bars: &SymbolBars,
    source: &PanelSource,
    config: &StocksConfig,
    dates: &[Date],
) -> Result<Vec<HedgeQuote>, StageError> {
    let config = StocksConfig {
        fills: StockFills {
            impact: 0.0,
            participation: None,
            ..config.fills.clone()
        },
        ..config.clone()
    };
    let mut known = checked(bars, &source.actions, &config)?;
    known.retain(|bar| dates.binary_search(&bar.date).is_ok());
    StageError::new(format!(
        "`{}`, which hedges, has no bar on a date of `{}`",
        bars.symbol, source.name
    ))
    .when(known.is_empty())?;
    let changes = adjustments(&source.actions, &bars.symbol, dates)?;
    let mut symbol = Symbol::new(&config, &known, &changes);
    let quote = |(row, &date): (usize, &Date)| {
        let change = changes.iter().find(|change| change.snapshot == row);
        let day = symbol.day(row, date);
        HedgeQuote {
            price: day.mark,
            before: day.mark,
            open: day.open,
            status: f64::from(day.status),
            ratio: change.map_or(1.0, ratio),
            cash: change.map_or(0.0, |change| change.cash),
        }
    };
    Ok(dates.iter().enumerate().map(quote).collect())
}

fn future_quote(future: hedge::FuturePrice) -> HedgeQuote {
    let mut flags = status::LISTED;
    for (is_so, flag) in [
        (future.is_quoted, status::TRADES),
        (!future.open.is_nan(), status::OPENS),
        (future.is_roll, status::ROLLS),
    ] {
        flags |= if is_so { flag } else { 0 };
    }
    HedgeQuote {
        price: future.price,
        before: future.before,
        open: if future.open.is_nan() {
            future.before
        } else {
            future.open
        },
        status: f64::from(flags),
        ratio: 1.0,
        cash: 0.0,
    }
}

/// The betas `[T, N]`: each from the returns up to its date.
fn betas(panel: &Panel, events: &[Event], quotes: &[HedgeQuote], window: usize) -> Vec<f64> {
    let t = quotes.len();
    let n = panel.status.len() / t.max(1);
    let mut out = vec![1.0; t * n];
    let mut known: Vec<VecDeque<(f64, f64)>> = vec![VecDeque::with_capacity(window); n];
    let mut events = events;
    for row in 0..t {
        let today = events.partition_point(|event| event.t as usize <= row);
        let (of_today, later) = events.split_at(today);
        events = later;
        let of_hedge = row
            .checked_sub(1)
            .and_then(|last| quotes[row].total_return(&quotes[last]));
        for i in 0..n {
            let (at, pairs) = (row * n + i, &mut known[i]);
            if panel.status[at] & status::SETTLES != 0 {
                pairs.clear();
            }
            let trades = |at: usize| panel.status[at] & status::TRADES != 0;
            if let Some(of_hedge) = of_hedge
                && trades(at)
                && trades(at - n)
            {
                let event = of_today.iter().find(|event| event.symbol as usize == i);
                let (ratio, cash) = event.map_or((1.0, 0.0), |event| (event.ratio, event.cash));
                if pairs.len() == window {
                    pairs.pop_front();
                }
                pairs.push_back((of_hedge, (panel.mark[at] * ratio + cash) / panel.mark[at - n] - 1.0));
            }
            out[at] = slope(pairs);
        }
    }
    out
}

/// The slope of the second values on the first; 1 of too few, or where the first do not differ.
fn slope(pairs: &VecDeque<(f64, f64)>) -> f64 {
    let count = pairs.len() as f64;
    let (x, y) = pairs
        .iter()
        .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let (mean_x, mean_y) = (x / count, y / count);
    let (mut both, mut square) = (0.0, 0.0);
    for (x, y) in pairs {
        both += (x - mean_x) * (y - mean_y);
        square += (x - mean_x) * (x - mean_x);
    }
    match pairs.len() >= LEAST_RETURNS && square > 0.0 {
        true => both / square,
        false => 1.0,
    }
}
