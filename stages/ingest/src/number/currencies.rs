//! Signs and codes of currencies in front of and behind numbers.

/// Signs and words of currencies, before or behind a number. None for hundredths (`p`, `GBX`), which are
/// another unit.
pub(super) const CURRENCIES: &[&str] = &[
    "US$", "HK$", "NT$", "R$", "C$", "A$", "S$", "$", "€", "£", "¥", "￥", "₹", "₩", "₽", "₺", "₪", "฿", "₫",
    "元", "円", "원", "zł", "USDT", "USDC", "USD", "EUR", "GBP", "JPY", "CNY", "CNH", "RMB", "HKD", "TWD",
    "KRW", "INR", "SGD", "AUD", "CAD", "NZD", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RUB", "TRY",
    "BRL", "MXN", "ZAR", "kr", "Kč", "Ft", "TL",
];

/// The currencies that a sign or code in front of prices stands for; empty for what is neither.
pub(crate) fn currencies(sign: &str) -> &'static [&'static str] {
    match sign.trim_end_matches('.') {
        "US$" => &["USD"],
        "$" => &[
            "USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP",
        ],
        "HK$" => &["HKD"],
        "NT$" => &["TWD"],
        "R$" => &["BRL"],
        "C$" => &["CAD"],
        "A$" => &["AUD"],
        "S$" => &["SGD"],
        "€" => &["EUR"],
        "£" => &["GBP"],
        "¥" | "￥" => &["JPY", "CNY", "CNH"],
        "₹" => &["INR"],
        "₩" | "원" => &["KRW"],
        "₽" => &["RUB"],
        "₺" | "TL" => &["TRY"],
        "₪" => &["ILS"],
        "฿" => &["THB"],
        "₫" => &["VND"],
        "元" | "RMB" => &["CNY"],
        "円" => &["JPY"],
        "zł" => &["PLN"],
        "kr" => &["SEK", "NOK", "DKK", "ISK"],
        "Kč" => &["CZK"],
        "Ft" => &["HUF"],
        code => CURRENCIES
            .iter()
            .position(|known| *known == code)
            .map_or(&[], |place| &CURRENCIES[place..=place]),
    }
}
