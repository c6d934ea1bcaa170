//! The contracts of a chain with implied volatilities, and a chain of them.

use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, UInt8Array};
use arrow_schema::Schema;
use datasets::Date;
use datasets::schema::{IMPLIED_VOLATILITY, OPTION_CHAIN};
use stages_core::table;
use stages_greeks::numerics::formula::{Contract, black_76};
use std::sync::Arc;

/// A contract with its implied volatility, or without one.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub date: Date,
    pub expiry: Date,
    pub root: String,
    pub strike: f64,
    pub call: bool,
    pub bid: f64,
    pub ask: f64,
    pub years: f64,
    pub forward: f64,
    pub discount: f64,
    pub volatility: f64,
}

impl Line {
    pub(crate) fn log_moneyness(&self) -> f64 {
        libm::log(self.strike / self.forward)
    }

    /// Undiscounted, over the forward.
    pub(crate) fn price(&self, volatility: f64) -> f64 {
        price(self.strike / self.forward, self.years, volatility, self.call)
    }

    /// Half of bid to ask, likewise.
    pub(crate) fn half_spread(&self) -> f64 {
        0.5 * (self.ask - self.bid) / self.discount / self.forward
    }

    /// Tests whether it is a quote out of the money that a surface is fitted to.
    pub(crate) fn is_quote(&self) -> bool {
        self.years * 365.0 >= 2.0 && self.volatility > 0.0 && self.call == (self.strike >= self.forward)
    }

    /// Tests whether a volatility's price lies between bid and ask; of an American quote, its European
    /// equivalents.
    pub(crate) fn has_inside(&self, volatility: f64) -> bool {
        (self.price(volatility) - self.price(self.volatility)).abs() <= self.half_spread() * (1.0 + 1e-9)
    }
}

/// The undiscounted price over the forward.
pub(crate) fn price(strike: f64, years: f64, volatility: f64, call: bool) -> f64 {
    let option = Contract {
        spot: 1.0,
        strike,
        years,
        rate: 0.0,
        dividend_yield: 0.0,
        volatility,
        call,
    };
    black_76(&option).price
}

/// The contracts of a chain with implied volatilities.
pub(crate) fn lines(chain: &RecordBatch) -> Vec<Line> {
    let column = |name| table::floats_or_nan(chain, name).unwrap();
    let (strike, bid, ask, years) = (column("strike"), column("bid"), column("ask"), column("years"));
    let (forward, discount) = (column("forward"), column("discount_factor"));
    let volatility = column("implied_volatility");
    let (dates, expiries) = (
        table::dates(chain, "date").unwrap(),
        table::dates(chain, "expiry").unwrap(),
    );
    let (roots, calls) = (
        table::texts(chain, "root").unwrap(),
        table::bools(chain, "call").unwrap(),
    );
    (0..chain.num_rows())
        .map(|i| Line {
            date: dates[i],
            expiry: expiries[i],
            root: roots.value(i).to_owned(),
            strike: strike[i],
            call: calls.value(i),
            bid: bid[i],
            ask: ask[i],
            years: years[i],
            forward: forward[i],
            discount: discount[i],
            volatility: volatility[i],
        })
        .collect()
}

/// A chain of lines in any order, and its rows' lines.
pub(crate) fn chain(lines: &[Line]) -> (RecordBatch, Vec<usize>) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&lines[a], &lines[b]);
        (a.date, a.expiry, &a.root)
            .cmp(&(b.date, b.expiry, &b.root))
            .then(a.strike.total_cmp(&b.strike))
            .then(b.call.cmp(&a.call))
    });
    let n = lines.len();
    let rows = || order.iter().map(|&i| &lines[i]);
    let float =
        |f: fn(&Line) -> f64| -> ArrayRef { Arc::new(table::nullable(&rows().map(f).collect::<Vec<_>>())) };
    let plain = |f: fn(&Line) -> f64| -> ArrayRef {
        Arc::new(rows().map(|line| Some(f(line))).collect::<Float64Array>())
    };
    let nothing = || -> ArrayRef { Arc::new(table::nullable(&vec![f64::NAN; n])) };
    let mut fields: Vec<_> = OPTION_CHAIN.iter().map(table::field).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["TEST"; n])),
        Arc::new(rows().map(|line| Some(line.date.0)).collect::<Date32Array>()),
        Arc::new(rows().map(|line| Some(line.expiry.0)).collect::<Date32Array>()),
        Arc::new(StringArray::from_iter_values(rows().map(|line| &line.root))),
        plain(|line| line.strike),
        Arc::new(rows().map(|line| Some(line.call)).collect::<BooleanArray>()),
        float(|line| line.bid),
        float(|line| line.ask),
        nothing(),
        nothing(),
        nothing(),
        nothing(),
        float(|line| line.volatility),
    ];
    for column in IMPLIED_VOLATILITY
        .iter()
        .filter(|column| column.name != "implied_volatility")
    {
        fields.push(table::field(column));
        columns.push(match column.name {
            "years" => plain(|line| line.years),
            "forward" => float(|line| line.forward),
            "discount_factor" => float(|line| line.discount),
            _ => Arc::new(UInt8Array::from(vec![0; n])),
        });
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    (batch, order)
}
