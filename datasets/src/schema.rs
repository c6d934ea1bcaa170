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
    /// The name of the column.
    pub name: &'static str,
    /// The type of its values.
    pub ty: Type,
    /// True where values may be missing.
    pub nullable: bool,
    /// The contents of the column, with their unit.
    pub doc: &'static str,
}

/// A list of columns, a line each: name, type, `or null` where values may be missing, and contents.
macro_rules! columns {
    ($($name:ident: $ty:ident $(or $null:ident)?, $doc:literal;)*) => {
        &[$(Column {
            name: stringify!($name),
            ty: Type::$ty,
            nullable: { let null: &[&str] = &[$(stringify!($null))?]; !null.is_empty() },
            doc: $doc,
        }),*]
    };
}

/// Daily bars of an underlying or a stock.
pub const BARS: &[Column] = columns! {
    symbol: Text, "ticker";
    date: Date, "trading day";
    open: Float or null, "first price, in currency";
    high: Float or null, "highest price";
    low: Float or null, "lowest price";
    close: Float, "last price";
    volume: Float or null, "units traded";
    adjusted_close: Float or null, "close adjusted for splits and, unless its layout says not, dividends";
};

/// Option quotes, one row for each contract and snapshot.
pub const OPTION_CHAIN: &[Column] = columns! {
    symbol: Text, "underlying";
    date: Date, "day of the snapshot";
    expiry: Date, "last trading day or day of settlement";
    root: Text, "option class, such as SPX or SPXW";
    strike: Float, "strike price, in currency";
    call: Bool, "true for a call, false for a put";
    bid: Float or null, "best bid for one unit of the underlying; null or 0 when there is none";
    ask: Float or null, "best ask; null when there is none";
    last: Float or null, "last trade or close";
    volume: Float or null, "contracts traded";
    open_interest: Float or null, "contracts open";
    underlying: Float or null, "price of the underlying at the snapshot";
    implied_volatility: Float or null, "annual, decimal (0.2 is 20 %), at mid";
};

/// The columns in which the rows of a file state terms of their contracts, under the names of
/// [`crate::contract::Terms`]. A layout may map any of them; the table of a file then has them after those of
/// [`OPTION_CHAIN`]. The stage takes them into its metadata (see [`crate::contract`]), so that no chain has
/// them. Texts are the names that `contract:` takes, in any case.
pub const CONTRACT_TERMS: &[Column] = columns! {
    underlying_kind: Text or null, "index, share, etf, future or coin";
    exercise: Text or null, "european or american";
    settlement: Text or null, "cash, physical or coin";
    expires: Text or null, "am or pm";
    multiplier: Float or null, "units of the underlying in a contract";
    deliverable: Text or null, "the deliverable of an adjusted contract";
    currency: Text or null, "of strikes and prices, ISO 4217";
};

/// The column in which the rows of a file state their time of day, beside a `date` that is a day alone. A
/// layout may map it; no chain has it.
pub const TIME_OF_DAY: Column = columns! {
    time: Text or null, "time of day of the quotes in the layout's `zone`: 15:45:00, hours after midnight \
        (15.75; milliseconds with `per: 3600000`) or an epoch";
}[0];

/// The column that `ingest/option_chain` adds to an option chain: false where the row is a mark at which
/// nothing can be traded. Rows of a chain without it can all be traded.
pub const TRADABLE: Column = columns! {
    tradable: Bool, "false where the row is a mark at which nothing can be traded";
}[0];

/// The column of chains with several snapshots a day, and of the Greeks and features made from them; it
/// stands after `date`. A data set has it in all its partitions, or in none.
pub const SNAPSHOT: Column = columns! {
    snapshot: Instant, "instant of the quotes, UTC; `date` is its day in the time zone of the exchange";
}[0];

/// The columns of an option chain that files may state beside its quotes, and that a chain has where a layout
/// maps them: what prices a contract, by row or once for an expiry.
pub const PRICING_TERMS: &[Column] = columns! {
    forward: Float or null, "forward price of the underlying at expiry";
    discount_factor: Float or null, "value now of 1 at expiry";
    years: Float or null, "time to expiry in years";
    dividend_yield: Float or null, "continuous yield of the underlying up to expiry, annual, decimal";
    borrow_rate: Float or null, "continuous rate of borrowing the underlying up to expiry, annual, \
        decimal; it adds to the yield";
};

/// The Greeks that a vendor states, which a chain keeps where a layout maps them; in the units of [`GREEKS`].
pub const VENDOR_GREEKS: &[Column] = columns! {
    vendor_implied_volatility: Float or null, "the vendor's volatility, as the file has it: no rule and no \
        stage replaces it";
    vendor_delta: Float or null, "the vendor's dV/dS";
    vendor_gamma: Float or null, "the vendor's d2V/dS2";
    vendor_vega: Float or null, "the vendor's dV/dsigma per 1.00 of volatility";
    vendor_theta: Float or null, "the vendor's dV/dt per year of calendar time passing";
    vendor_rho: Float or null, "the vendor's dV/dr per 1.00 of rate";
};

/// The sizes of the best quotes, which a chain keeps where a layout maps them.
pub const QUOTE_SIZES: &[Column] = columns! {
    bid_size: Float or null, "contracts that the best bid is for";
    ask_size: Float or null, "contracts that the best ask is for";
};

/// The number of [`stated`] columns.
pub const STATED: usize = PRICING_TERMS.len() + VENDOR_GREEKS.len() + QUOTE_SIZES.len();

/// The columns that an option chain has where a layout maps them: [`PRICING_TERMS`], then [`VENDOR_GREEKS`],
/// then [`QUOTE_SIZES`]. A data set has one of them in all its partitions, or in none; they stand after those
/// of [`OPTION_CHAIN`].
pub fn stated() -> impl Iterator<Item = &'static Column> {
    PRICING_TERMS.iter().chain(VENDOR_GREEKS).chain(QUOTE_SIZES)
}

/// Corporate actions, in the order of their ex-dates. Sorted by (symbol, date, kind).
pub const CORPORATE_ACTIONS: &[Column] = columns! {
    symbol: Text, "ticker before the action";
    date: Date, "ex-date: the first day on which the share trades without what the action gives";
    kind: Text, "split, cash_dividend, special_dividend, stock_dividend or symbol_change";
    ratio: Float or null, "shares after the action for one before: 7 for a 7-for-1 split, 0.125 for a \
        reverse 1-for-8, 1.05 for a stock dividend of 5 %";
    amount: Float or null, "cash for a share, in currency, unadjusted";
    new_symbol: Text or null, "ticker after the action";
    origin: Text, "where it is from: file, lean, yahoo, config or found (in prices, to be confirmed)";
};

/// The columns that `greeks/implied_volatility` adds to (or, for `implied_volatility`, replaces in) an option
/// chain.
pub const IMPLIED_VOLATILITY: &[Column] = columns! {
    years: Float, "time to expiry in years of 365 days";
    forward: Float or null, "forward price of the underlying at expiry";
    discount_factor: Float or null, "value now of 1 at expiry";
    implied_volatility: Float or null, "annual, decimal, at mid; null when there is none";
    iv_status: Code, "0 ok, 8 a volatility that rounding of the price decides, otherwise why there is none";
};

/// Greeks, row by row beside an option chain; per one unit of the underlying.
pub const GREEKS: &[Column] = columns! {
    symbol: Text, "underlying";
    date: Date, "day of the snapshot";
    expiry: Date, "as in the chain";
    root: Text, "as in the chain";
    strike: Float, "as in the chain";
    call: Bool, "as in the chain";
    price: Float or null, "model price, in currency";
    delta: Float or null, "dV/dS";
    gamma: Float or null, "d2V/dS2";
    vega: Float or null, "dV/dsigma per 1.00 of volatility";
    theta: Float or null, "dV/dt per year of calendar time passing";
    rho: Float or null, "dV/dr per 1.00 of rate";
    vanna: Float or null, "d2V/dS dsigma per 1.00 of volatility";
    volga: Float or null, "d2V/dsigma2 per 1.00 of volatility squared";
    charm: Float or null, "d(delta)/dt per year of calendar time passing";
};

/// Zero rates by tenor. Sorted by (date, tenor_years).
pub const RATES: &[Column] = columns! {
    date: Date, "day";
    tenor_years: Float, "time to maturity in years; 0 is overnight";
    rate: Float, "continuously compounded, annual, decimal";
};

/// The columns that every table of a user's own begins with; a float column, nullable, for each of the user's
/// follows.
pub const TABLE: &[Column] = columns! {
    symbol: Text, "name of the series that the row is of; `table` where there is one alone";
    date: Date, "day of the row";
};

/// The columns that tell a contract of a chain, after the symbol and the time of its row.
pub const CONTRACT: &[Column] = columns! {
    expiry: Date, "as in the chain";
    root: Text, "as in the chain";
    strike: Float, "as in the chain";
    call: Bool, "as in the chain";
};

/// The columns that every feature table begins with, features by contract with those of [`CONTRACT`] after
/// them; one nullable float column for each feature follows.
pub const FEATURES: &[Column] = columns! {
    symbol: Text, "ticker";
    date: Date, "trading day";
};
