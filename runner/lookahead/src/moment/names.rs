//! The names of columns with dates.

/// True if a column of this name holds the time at which a row was known.
pub fn is_date_name(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "date",
        "day",
        "datetime",
        "time",
        "timestamp",
        "ts",
        "epoch",
        "trade_date",
        "tradedate",
        "trading_day",
        "quote_date",
        "asof",
        "as_of",
        "as_of_date",
        "data_date",
        "datadate",
        "caldt",
        "dt",
        "dates",
        "open_time",
        "index",
        "obs_date",
    ];
    let name = name
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_ascii_lowercase();
    NAMES.contains(&name.replace([' ', '-'], "_").as_str())
}

/// True if a column of this name holds dates that do not tell when its row was known.
pub(super) fn is_other_date_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["expir", "matur", "settle", "payment", "birth", "listed", "ipo"]
        .iter()
        .any(|part| name.contains(part))
}
