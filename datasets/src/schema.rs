//! The schemas of market data: one list of columns for each table.
//!
//! A table is sorted by (symbol, date), then by [`SNAPSHOT`] where it has that column and, for option chains,
//! by (expiry, root, strike, call before put); the key is unique. Partitions cut it by date range and
//! symbols.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// UTF-8 text.
    Text,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Instant,
    /// 64-bit float.
    Float,
    /// 8-bit unsigned integer, a code.
    Code,
    /// True or false.
    Bool,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// True where values may be missing.
    pub nullable: bool,
    /// Its contents, with their unit.
    pub doc: &'static str,
}

const fn column(name: &'static str, ty: Type, nullable: bool, doc: &'static str) -> Column {
    Column {
        name,
        ty,
        nullable,
        doc,
    }
}

/// Daily bars of an underlying or a stock.
pub const BARS: &[Column] = &[
    column("symbol", Type::Text, false, "ticker"),
    column("date", Type::Date, false, "trading day"),
    column("open", Type::Float, true, "first price, in currency"),
    column("high", Type::Float, true, "highest price"),
    column("low", Type::Float, true, "lowest price"),
    column("close", Type::Float, false, "last price"),
    column("volume", Type::Float, true, "units traded"),
    column(
        "adjusted_close",
        Type::Float,
        true,
        "close adjusted for splits and dividends",
    ),
];

/// Option quotes, one row for each contract and snapshot.
pub const OPTION_CHAIN: &[Column] = &[
    column("symbol", Type::Text, false, "underlying"),
    column("date", Type::Date, false, "day of the snapshot"),
    column("expiry", Type::Date, false, "last trading day or day of settlement"),
    column("root", Type::Text, false, "option class, such as SPX or SPXW"),
    column("strike", Type::Float, false, "strike price, in currency"),
    column("call", Type::Bool, false, "true for a call, false for a put"),
    column(
        "bid",
        Type::Float,
        true,
        "best bid for one unit of the underlying; null or 0 when there is none",
    ),
    column("ask", Type::Float, true, "best ask; null when there is none"),
    column("last", Type::Float, true, "last trade or close"),
    column("volume", Type::Float, true, "contracts traded"),
    column("open_interest", Type::Float, true, "contracts open"),
    column(
        "underlying",
        Type::Float,
        true,
        "price of the underlying at the snapshot",
    ),
    column(
        "implied_volatility",
        Type::Float,
        true,
        "annual, decimal (0.2 is 20 %), at mid",
    ),
];

/// The columns in which the rows of a file state terms of their contracts, under the names of
/// [`crate::contract::Terms`]. A layout may map any of them; the table of a file then has them after those of
/// [`OPTION_CHAIN`]. The stage takes them into its metadata (see [`crate::contract`]), so that no chain has
/// them. Texts are the names that `contract:` takes, in any case.
pub const CONTRACT_TERMS: &[Column] = &[
    column("underlying_kind", Type::Text, true, "index, share, etf, future or coin"),
    column("exercise", Type::Text, true, "european or american"),
    column("settlement", Type::Text, true, "cash, physical or coin"),
    column("expires", Type::Text, true, "am or pm"),
    column("multiplier", Type::Float, true, "units of the underlying in a contract"),
    column(
        "deliverable",
        Type::Text,
        true,
        "the deliverable of an adjusted contract",
    ),
    column("currency", Type::Text, true, "of strikes and prices, ISO 4217"),
];

/// The column in which the rows of a file state their time of day, beside a `date` that is a day alone. A
/// layout may map it; no chain has it.
pub const TIME_OF_DAY: Column = column(
    "time",
    Type::Text,
    true,
    "time of day of the quotes in the layout's `zone`: 15:45:00, hours after midnight (15.75; milliseconds \
    with `per: 3600000`) or an epoch",
);

/// The column that `ingest/option_chain` adds to an option chain: false where the row is a mark at which
/// nothing can be traded. Rows of a chain without it can all be traded.
pub const TRADABLE: Column = column(
    "tradable",
    Type::Bool,
    false,
    "false where the row is a mark at which nothing can be traded",
);

/// The column of chains with several snapshots a day, and of the Greeks and features made from them; it
/// stands after `date`. A data set has it in all its partitions, or in none.
pub const SNAPSHOT: Column = column(
    "snapshot",
    Type::Instant,
    false,
    "instant of the quotes, UTC; `date` is its day in the time zone of the exchange",
);

/// The columns of an option chain that files may state beside its quotes, and that a chain has where a layout
/// maps them: what prices a contract, by row or once for an expiry.
pub const PRICING_TERMS: &[Column] = &[
    column(
        "forward",
        Type::Float,
        true,
        "forward price of the underlying at expiry",
    ),
    column("discount_factor", Type::Float, true, "value now of 1 at expiry"),
    column("years", Type::Float, true, "time to expiry in years"),
    column(
        "dividend_yield",
        Type::Float,
        true,
        "continuous yield of the underlying up to expiry, annual, decimal",
    ),
    column(
        "borrow_rate",
        Type::Float,
        true,
        "continuous rate of borrowing the underlying up to expiry, annual, decimal; it adds to the yield",
    ),
];

/// The Greeks that a vendor states, which a chain keeps where a layout maps them; in the units of [`GREEKS`].
pub const VENDOR_GREEKS: &[Column] = &[
    column(
        "vendor_implied_volatility",
        Type::Float,
        true,
        "the vendor's volatility, as the file has it: no rule and no stage replaces it",
    ),
    column("vendor_delta", Type::Float, true, "the vendor's dV/dS"),
    column("vendor_gamma", Type::Float, true, "the vendor's d2V/dS2"),
    column(
        "vendor_vega",
        Type::Float,
        true,
        "the vendor's dV/dsigma per 1.00 of volatility",
    ),
    column(
        "vendor_theta",
        Type::Float,
        true,
        "the vendor's dV/dt per year of calendar time passing",
    ),
    column("vendor_rho", Type::Float, true, "the vendor's dV/dr per 1.00 of rate"),
];

/// The sizes of the best quotes, which a chain keeps where a layout maps them.
pub const QUOTE_SIZES: &[Column] = &[
    column("bid_size", Type::Float, true, "contracts that the best bid is for"),
    column("ask_size", Type::Float, true, "contracts that the best ask is for"),
];

/// The number of [`stated`] columns.
pub const STATED: usize = PRICING_TERMS.len() + VENDOR_GREEKS.len() + QUOTE_SIZES.len();

/// The columns that an option chain has where a layout maps them: [`PRICING_TERMS`], then [`VENDOR_GREEKS`],
/// then [`QUOTE_SIZES`]. A data set has one of them in all its partitions, or in none; they stand after those
/// of [`OPTION_CHAIN`].
pub fn stated() -> impl Iterator<Item = &'static Column> {
    PRICING_TERMS.iter().chain(VENDOR_GREEKS).chain(QUOTE_SIZES)
}

/// Corporate actions, in the order of their ex-dates. Sorted by (symbol, date, kind).
pub const CORPORATE_ACTIONS: &[Column] = &[
    column("symbol", Type::Text, false, "ticker before the action"),
    column(
        "date",
        Type::Date,
        false,
        "ex-date: the first day on which the share trades without what the action gives",
    ),
    column(
        "kind",
        Type::Text,
        false,
        "split, cash_dividend, special_dividend, stock_dividend or symbol_change",
    ),
    column(
        "ratio",
        Type::Float,
        true,
        "shares after the action for one before: 7 for a 7-for-1 split, 0.125 for a reverse 1-for-8, 1.05 \
        for a stock dividend of 5 %",
    ),
    column("amount", Type::Float, true, "cash for a share, in currency, unadjusted"),
    column("new_symbol", Type::Text, true, "ticker after the action"),
    column(
        "origin",
        Type::Text,
        false,
        "where it is from: file, lean, yahoo, config or found (in prices, to be confirmed)",
    ),
];

/// The columns that `greeks/implied_volatility` adds to (or, for `implied_volatility`, replaces in) an option
/// chain.
pub const IMPLIED_VOLATILITY: &[Column] = &[
    column("years", Type::Float, false, "time to expiry in years of 365 days"),
    column(
        "forward",
        Type::Float,
        true,
        "forward price of the underlying at expiry",
    ),
    column("discount_factor", Type::Float, true, "value now of 1 at expiry"),
    column(
        "implied_volatility",
        Type::Float,
        true,
        "annual, decimal, at mid; null when there is none",
    ),
    column(
        "iv_status",
        Type::Code,
        false,
        "0 ok, 8 a volatility that rounding of the price decides, otherwise why there is none",
    ),
];

/// Greeks, row by row beside an option chain; per one unit of the underlying.
pub const GREEKS: &[Column] = &[
    column("symbol", Type::Text, false, "underlying"),
    column("date", Type::Date, false, "day of the snapshot"),
    column("expiry", Type::Date, false, "as in the chain"),
    column("root", Type::Text, false, "as in the chain"),
    column("strike", Type::Float, false, "as in the chain"),
    column("call", Type::Bool, false, "as in the chain"),
    column("price", Type::Float, true, "model price, in currency"),
    column("delta", Type::Float, true, "dV/dS"),
    column("gamma", Type::Float, true, "d2V/dS2"),
    column("vega", Type::Float, true, "dV/dsigma per 1.00 of volatility"),
    column("theta", Type::Float, true, "dV/dt per year of calendar time passing"),
    column("rho", Type::Float, true, "dV/dr per 1.00 of rate"),
    column("vanna", Type::Float, true, "d2V/dS dsigma per 1.00 of volatility"),
    column("volga", Type::Float, true, "d2V/dsigma2 per 1.00 of volatility squared"),
    column(
        "charm",
        Type::Float,
        true,
        "d(delta)/dt per year of calendar time passing",
    ),
];

/// Zero rates by tenor. Sorted by (date, tenor_years).
pub const RATES: &[Column] = &[
    column("date", Type::Date, false, "day"),
    column(
        "tenor_years",
        Type::Float,
        false,
        "time to maturity in years; 0 is overnight",
    ),
    column("rate", Type::Float, false, "continuously compounded, annual, decimal"),
];

/// The columns that every table of a user's own begins with; a float column, nullable, for each of the user's
/// follows.
pub const TABLE: &[Column] = &[
    column(
        "symbol",
        Type::Text,
        false,
        "name of the series that the row is of; `table` where there is one alone",
    ),
    column("date", Type::Date, false, "day of the row"),
];

/// The columns that tell a contract of a chain, after the symbol and the time of its row.
pub const CONTRACT: &[Column] = &[
    column("expiry", Type::Date, false, "as in the chain"),
    column("root", Type::Text, false, "as in the chain"),
    column("strike", Type::Float, false, "as in the chain"),
    column("call", Type::Bool, false, "as in the chain"),
];

/// The columns that every feature table begins with, features by contract with those of [`CONTRACT`] after
/// them; one nullable float column for each feature follows.
pub const FEATURES: &[Column] = &[
    column("symbol", Type::Text, false, "ticker"),
    column("date", Type::Date, false, "trading day"),
];
