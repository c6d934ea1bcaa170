//! The requirements of a file of each type, as people read them; the checks are in `data_set`.

use crate::port::PortType;
use datasets::schema::{BARS, CORPORATE_ACTIONS, Column, FEATURES, GREEKS, RATES, SNAPSHOT, TABLE};

/// The requirements of a type that programs can write.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The named columns; one that is not nullable is required, but for those in `alternatives`.
    pub columns: Vec<Column>,
    /// Columns that may be left out although they are not nullable, each with its contents.
    pub alternatives: &'static [(&'static str, &'static str)],
    /// The columns beside them; `None` where there may be no others.
    pub others: Option<&'static str>,
    /// The columns that make the key of a row.
    pub key: &'static str,
    /// Checks of values, a line each.
    pub checks: &'static [&'static str],
}

const FINITE: &str = "numbers are finite; a missing value is null, or an empty field of CSV";
const UNIQUE: &str = "a key has one row";

/// The requirements of a type; `None` for one that no program can write.
pub fn requirements(ty: PortType) -> Option<Requirements> {
    Some(match ty {
        PortType::Features => Requirements {
            columns: FEATURES.to_vec(),
            alternatives: &[],
            others: Some("one column of numbers or more, each a feature"),
            key: "symbol and date",
            checks: &[FINITE, UNIQUE, "a feature is shown on its own date: no lag is added"],
        },
        PortType::Table => Requirements {
            columns: TABLE.iter().chain([&SNAPSHOT]).copied().collect(),
            alternatives: &[
                (
                    "symbol",
                    "name of the series that the row is of; left out where there is one",
                ),
                ("date", "day of the row; left out beside `snapshot` for its day in UTC"),
                (
                    "snapshot",
                    "instant of the row, in place of `date` or beside it, where a day has several rows",
                ),
            ],
            others: Some("one column of numbers or more"),
            key: "symbol and date, or symbol and snapshot",
            checks: &[FINITE, UNIQUE, "what stands in a row is known at its instant"],
        },
        PortType::Bars => Requirements {
            columns: BARS.to_vec(),
            alternatives: &[],
            others: None,
            key: "symbol and date",
            checks: &[
                FINITE,
                UNIQUE,
                "prices are above 0, high and low bound open and close",
                "volume is not negative",
            ],
        },
        PortType::Rates => Requirements {
            columns: RATES.to_vec(),
            alternatives: &[],
            others: None,
            key: "date and tenor_years",
            checks: &[
                FINITE,
                UNIQUE,
                "rates are annual decimals (0.05 is 5 %), tenors are not negative",
            ],
        },
        PortType::CorporateActions => Requirements {
            columns: CORPORATE_ACTIONS.to_vec(),
            alternatives: &[("origin", "where it is from; `file` where it is left out")],
            others: None,
            key: "symbol, date and kind",
            checks: &[
                FINITE,
                UNIQUE,
                "a split and a stock dividend have a ratio above 0, a dividend of cash an amount above 0, a change of symbol the new one",
            ],
        },
        PortType::Greeks => Requirements {
            columns: GREEKS.to_vec(),
            alternatives: &[],
            others: None,
            key: "symbol, date, expiry, root, strike and call",
            checks: &[
                FINITE,
                UNIQUE,
                "an environment needs the rows of its chain, all of them and no others",
                "a file that is named as a partition of the chain is that partition (`@stage(by=\"partition\")` names them so); other files are cut by month",
            ],
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed_output::TYPES;

    #[test]
    fn every_type_that_programs_write_has_some() {
        for ty in TYPES {
            let of = requirements(ty).unwrap();
            for (name, _) in of.alternatives {
                assert!(of.columns.iter().any(|column| column.name == *name), "{name}");
            }
        }
        assert!(requirements(PortType::Env).is_none());
    }
}
