//! The dates of a world: marks, opens, status, volume and volatility of each symbol, and the events that
//! change holdings.

use super::source::{Bar, PanelSource, SymbolBars};
use crate::adjustment::{Adjustment, adjustments};
use crate::stocks::config::{FillAt, Prices, Rules, StocksConfig};
use crate::stocks::tables::{Event, Panel, status};
use datasets::Date;
use datasets::corporate_action::{BySymbol, CorporateAction};
use stages_core::StageError;
use std::collections::VecDeque;

/// A world's dates, without features and rates, with the events that change holdings.
pub(super) fn panel(source: &PanelSource, config: &StocksConfig) -> Result<(Panel, Vec<Event>), StageError> {
    let bars = checked_bars(source, config)?;
    let mut dates: Vec<Date> = bars.iter().flatten().map(|bar| bar.date).collect();
    dates.sort_unstable();
    dates.dedup();
    StageError::new(format!(
        "the bars of `{}` have {} dates; at least 2 are needed",
        source.name,
        dates.len()
    ))
    .when(dates.len() < 2)?;
    let (t, n) = (dates.len(), bars.len());
    let by_volume = config.fills.by_volume();
    let mut out = Panel {
        dates: dates.iter().map(|date| date.0).collect(),
        mark: vec![0.0; t * n],
        open: match config.fills.at {
            FillAt::NextOpen => vec![0.0; t * n],
            FillAt::Close | FillAt::NextClose => Vec::new(),
        },
        status: vec![0; t * n],
        liquidity: vec![0.0; if by_volume { 2 * t * n } else { 0 }],
        ..Panel::default()
    };
    let actions = BySymbol::new(&source.actions);
    let mut events = Vec::new();
    for (i, bars) in bars.iter().enumerate() {
        if config.rules == Rules::Finrl && bars.len() < t {
            return Err(lacks_a_date(source, i, bars, &dates));
        }
        let symbol = &source.bars[i].symbol;
        let changes = adjustments(actions.of(symbol), symbol, &dates)?;
        events.extend(changes.iter().map(|change| Event {
            t: change.snapshot as u32,
            symbol: i as u32,
            ratio: ratio(change),
            cash: change.cash,
        }));
        let mut symbol = Symbol::new(config, bars, &changes);
        for (row, &date) in dates.iter().enumerate() {
            let day = symbol.day(row, date);
            let at = row * n + i;
            out.mark[at] = day.mark;
            out.status[at] = day.status;
            if let Some(open) = out.open.get_mut(at) {
                *open = day.open;
            }
            if by_volume {
                out.liquidity[2 * at..2 * at + 2].copy_from_slice(&day.liquidity);
            }
        }
    }
    // Splits before dividends of the same day do not occur: a symbol has one event a day.
    events.sort_by_key(|event| (event.t, event.symbol));
    Ok((out, events))
}

/// The number of shares after a corporate action for one before.
pub(super) fn ratio(change: &Adjustment) -> f64 {
    f64::from(change.shares) * change.ratio
}

/// The bars of each symbol that have a price, on the basis of `prices`.
fn checked_bars(source: &PanelSource, config: &StocksConfig) -> Result<Vec<Vec<Bar>>, StageError> {
    let of_symbol = |bars| checked(bars, &source.actions, config);
    source.bars.iter().map(of_symbol).collect()
}

/// The bars of a symbol that have a price, on the basis of `prices`; empty for a symbol without any bar.
pub(super) fn checked(
    of_symbol: &SymbolBars,
    actions: &[CorporateAction],
    config: &StocksConfig,
) -> Result<Vec<Bar>, StageError> {
    let adjusted = config.prices == Prices::AdjustedClose;
    let symbol = &of_symbol.symbol;
    // Of a world that lacks the symbol: never listed.
    if of_symbol.bars.is_empty() {
        return Ok(Vec::new());
    }
    StageError::new(format!(
        "`{symbol}` has corporate actions at `actions`, and `prices: adjusted_close` counts them already"
    ))
    .hint("set prices: close, or leave `actions` unconnected")
    .when(adjusted && actions.iter().any(|action| action.symbol == *symbol))?;
    let mut bars: Vec<Bar> = Vec::with_capacity(of_symbol.bars.len());
    for bar in of_symbol
        .bars
        .iter()
        .filter(|bar| bar.close.is_finite() && bar.close > 0.0)
    {
        if let Some(last) = bars.last().filter(|last| last.date >= bar.date) {
            return Err(StageError::new(format!(
                "the bars of `{symbol}` are not in order: {} follows {}",
                bar.date, last.date
            )));
        }
        let mut bar = *bar;
        if adjusted {
            let factor = bar.adjusted_close / bar.close;
            if !(factor.is_finite() && factor > 0.0) {
                return Err(
                    StageError::new(format!("`{symbol}` has no adjusted close on {}", bar.date))
                        .hint("set prices: close, with corporate actions at `actions`"),
                );
            }
            (bar.open, bar.close, bar.volume) = (bar.open * factor, bar.adjusted_close, bar.volume / factor);
        }
        bars.push(bar);
    }
    StageError::new(format!("`{symbol}` has no bar with a price"))
        .hint("leave it out at `symbols`")
        .when(bars.is_empty())?;
    StageError::new(format!("the bars of `{symbol}` have no open"))
        .hint("set fills: { at: close }")
        .when(config.fills.at == FillAt::NextOpen && !bars.iter().any(|bar| bar.open > 0.0))?;
    StageError::new(format!("the bars of `{symbol}` have no volume"))
        .hint("`fills.impact` and `fills.participation` need it; leave them out for data without it")
        .when(config.fills.by_volume() && !bars.iter().any(|bar| bar.volume > 0.0))?;
    Ok(bars)
}

fn lacks_a_date(source: &PanelSource, i: usize, bars: &[Bar], dates: &[Date]) -> StageError {
    let missing = dates
        .iter()
        .zip(bars.iter().map(|bar| Some(bar.date)).chain(std::iter::repeat(None)))
        .find(|(date, bar)| Some(**date) != *bar)
        .map_or(dates[0], |(date, _)| *date);
    StageError::new(format!(
        "`{}` has no bar on {missing}: `rules: finrl` needs one of every symbol on every date",
        source.bars[i].symbol
    ))
    .hint("FinRL drops such symbols, with hindsight; leave it out at `symbols`, or use rules: market")
}

/// A symbol on a date.
pub(super) struct Day {
    pub mark: f64,
    pub open: f64,
    pub status: u8,
    /// Mean volume in shares, and volatility; zeros where there is none.
    liquidity: [f64; 2],
}

/// The history of a symbol, date by date: what is known on each.
pub(super) struct Symbol<'a> {
    config: &'a StocksConfig,
    bars: &'a [Bar],
    changes: &'a [Adjustment],
    mark: f64,
    /// The number of dates since the symbol's last bar; `None` before the first, and after a delisting.
    since: Option<u32>,
    /// The values traded and returns of the last bars.
    values: VecDeque<f64>,
    returns: VecDeque<f64>,
    /// The close of the last bar in shares of today; `None` where no return begins.
    last: Option<f64>,
}

impl<'a> Symbol<'a> {
    pub(super) fn new(config: &'a StocksConfig, bars: &'a [Bar], changes: &'a [Adjustment]) -> Self {
        Self {
            config,
            bars,
            changes,
            mark: 0.0,
            since: None,
            values: VecDeque::new(),
            returns: VecDeque::new(),
            last: None,
        }
    }

    /// The next date, number `row`.
    pub(super) fn day(&mut self, row: usize, date: Date) -> Day {
        if let Some((change, rest)) = self.changes.split_first()
            && change.snapshot == row
        {
            self.changes = rest;
            let ratio = ratio(change);
            self.mark = ((self.mark - change.cash) / ratio).max(0.0);
            self.last = self.last.map(|last| last / ratio);
        }
        let before = self.mark;
        let bar = self.bars.split_first().filter(|(bar, _)| bar.date == date);
        let Some((bar, rest)) = bar else {
            let mut flags = 0;
            if let Some(since) = &mut self.since {
                *since += 1;
                if *since >= self.config.delisting.after {
                    flags = status::SETTLES;
                    self.since = None;
                    self.values.clear();
                    self.returns.clear();
                    self.last = None;
                } else {
                    flags = status::LISTED;
                }
            }
            return Day {
                mark: self.mark,
                open: before,
                status: flags,
                liquidity: [0.0; 2],
            };
        };
        self.bars = rest;
        (self.since, self.mark) = (Some(0), bar.close);
        let has_open = bar.open.is_finite() && bar.open > 0.0;
        let mut flags = status::LISTED | status::TRADES | if has_open { status::OPENS } else { 0 };
        let liquidity = self.liquidity(bar);
        let [volume, volatility] = liquidity;
        let fills = &self.config.fills;
        if fills.by_volume() && !(volume > 0.0 && (fills.impact == 0.0 || volatility > 0.0)) {
            flags &= !(status::TRADES | status::OPENS);
        }
        Day {
            mark: bar.close,
            open: if has_open { bar.open } else { before },
            status: flags,
            liquidity,
        }
    }

    /// Mean volume over the last bars, by value, in shares at today's close; and the standard deviation of
    /// their logarithmic returns.
    fn liquidity(&mut self, bar: &Bar) -> [f64; 2] {
        let fills = &self.config.fills;
        if !fills.by_volume() {
            return [0.0; 2];
        }
        let window = fills.window as usize;
        let push = |values: &mut VecDeque<f64>, value: f64| {
            if values.len() == window {
                values.pop_front();
            }
            values.push_back(value);
        };
        push(
            &mut self.values,
            bar.close * if bar.volume > 0.0 { bar.volume } else { 0.0 },
        );
        if let Some(last) = self.last.replace(bar.close) {
            push(&mut self.returns, libm::log(bar.close / last));
        }
        let mean = |values: &VecDeque<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let volatility = match self.returns.len() {
            0 | 1 => 0.0,
            count => {
                let mean = mean(&self.returns);
                let squares: f64 = self.returns.iter().map(|value| (value - mean) * (value - mean)).sum();
                (squares / (count - 1) as f64).sqrt()
            }
        };
        [mean(&self.values) / bar.close, volatility]
    }
}
