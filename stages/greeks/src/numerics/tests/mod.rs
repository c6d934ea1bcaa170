//! Tests over the whole domain, against prices in double-double arithmetic.

pub(crate) mod exact;
mod identities;
