//! American options on a spot that pays cash.

/// A cash dividend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dividend {
    /// Years from now to the ex-dividend date.
    pub years: f64,
    /// In currency.
    pub amount: f64,
}
