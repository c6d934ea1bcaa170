//! Prices of many symbols by date.

/// The prices of a panel, `[dates, symbols]` in row-major order; NaN where a symbol has none.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    close: Vec<f64>,
    symbols: usize,
}

impl Prices {
    pub(crate) fn new(close: Vec<f64>, symbols: usize) -> Self {
        Self { close, symbols }
    }

    pub(crate) fn symbols(&self) -> usize {
        self.symbols
    }

    pub(crate) fn dates(&self) -> usize {
        self.close.len() / self.symbols.max(1)
    }

    pub(crate) fn close(&self, date: usize, symbol: usize) -> f64 {
        self.close[date * self.symbols + symbol]
    }

    /// The simple return of a symbol since the panel's previous date; NaN if a price is missing, and on the
    /// first date.
    pub(crate) fn change(&self, date: usize, symbol: usize) -> f64 {
        if date == 0 {
            return f64::NAN;
        }
        self.close(date, symbol) / self.close(date - 1, symbol) - 1.0
    }

    #[cfg(test)]
    pub(crate) fn scale(&mut self, date: usize, symbol: usize, by: f64) {
        self.close[date * self.symbols + symbol] *= by;
    }
}
