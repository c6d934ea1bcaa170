//! The requirements of an output of each type, as people read them; the checks are in `data_set`.

use super::chain;
use crate::port::PortType;
use datasets::schema::{
    BARS, CONTRACT, CONTRACT_TERMS, CORPORATE_ACTIONS, Column, FEATURES, GREEKS, OPTION_CHAIN, RATES,
    SNAPSHOT, TABLE,
};

/// The requirements of a type that programs can write.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The form of the files: tables, JSON, safetensors.
    pub form: &'static str,
    /// The named columns, of a data set; one that is not nullable is required, but for those in
    /// `alternatives`.
    pub columns: Vec<Column>,
    /// Columns that may be left out although they are not nullable, each with its contents.
    pub alternatives: &'static [(&'static str, &'static str)],
    /// The columns beside them; `None` where there may be no others.
    pub others: Option<&'static str>,
    /// The columns that make the key of a row; empty for what has no rows.
    pub key: &'static str,
    /// Checks of values, a line each.
    pub checks: &'static [&'static str],
}

const TABLES: &str = "a file of Parquet or CSV, or a directory of them, in any order";
const FINITE: &str = "numbers are finite; a missing value is null, or an empty field of CSV";
const UNIQUE: &str = "a key has one row";
const INSTANT: (&str, &str) = (
    "snapshot",
    "instant of the row where a day has several, UTC; `date` is its day in the time zone of the exchange",
);
const CLASS: (&str, &str) = ("root", "option class; the symbol where it is left out");
const PARTITIONS: &str = "files that are all named as partitions of a chain are those partitions \
    (`@stage(by=\"partition\")` names them so); otherwise they are cut by month, or by day where the first \
    day has more than 5,000 rows";

/// The requirements of a type; `None` for one that no program can write.
pub fn requirements(ty: PortType) -> Option<Requirements> {
    let of_type = Requirements {
        form: TABLES,
        columns: Vec::new(),
        alternatives: &[],
        others: None,
        key: "",
        checks: &[],
    };
    Some(match ty {
        PortType::Features => Requirements {
            columns: FEATURES.iter().chain([&SNAPSHOT]).chain(CONTRACT).copied().collect(),
            alternatives: &[
                (
                    "snapshot",
                    "(by contract) instant of the row where a day has several, UTC; `date` is its day in \
                    the time zone of the exchange",
                ),
                ("expiry", "(by contract) as in the chain"),
                ("root", "(by contract) as in the chain; the symbol where it is left out"),
                ("strike", "(by contract) as in the chain"),
                ("call", "(by contract) as in the chain"),
            ],
            others: Some("one column of numbers or more, each a feature"),
            key: "symbol and date, or by contract symbol, date or snapshot, expiry, root, strike and call",
            checks: &[
                FINITE,
                UNIQUE,
                "a feature is shown on its own date, or at its own instant: no lag is added",
                "features are by contract where all of `expiry`, `strike` and `call` are there, or in their \
                place `contract`, the contract's symbol (SPY240419P00500000, BTC-28MAR25-90000-C): \
                `env/options` shows them by slot of the slate",
                "by contract, the strike is above 0 and the expiry not before the date; a contract without \
                a row has no value",
                "by contract, partitions are those that the files are named as, or months, or days where \
                the first day has more than 5,000 rows, as those of chains",
            ],
            ..of_type
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
            ..of_type
        },
        PortType::Bars => Requirements {
            columns: BARS.to_vec(),
            key: "symbol and date",
            checks: &[
                FINITE,
                UNIQUE,
                "prices are above 0, high and low bound open and close",
                "volume is not negative",
            ],
            ..of_type
        },
        PortType::OptionChain => Requirements {
            columns: OPTION_CHAIN
                .iter()
                .chain([&SNAPSHOT])
                .chain(chain::optional())
                .chain(CONTRACT_TERMS)
                .copied()
                .collect(),
            alternatives: &[
                CLASS,
                INSTANT,
                (
                    "tradable",
                    "false where nothing can be traded at the row; true where it is left out",
                ),
                (
                    "iv_status",
                    "why there is no implied volatility, as `greeks/implied_volatility` writes it",
                ),
            ],
            key: "symbol, date or snapshot, expiry, root, strike and call",
            checks: &[
                FINITE,
                UNIQUE,
                "strike, underlying, implied_volatility, forward and discount_factor are above 0; prices, \
                sizes and counts not below it",
                "the bid is not above the ask, the expiry not before the date",
                "prices are in currency, forwards and rates continuous: `greeks/implied_volatility` takes \
                the forwards that a chain states (with iv_status: `forward: column`)",
                "terms of contracts that no row states are those of the chains among the program's inputs, \
                or of the exchange's specification of the class, or assumed with a warning; the rows of a \
                class agree on theirs",
                PARTITIONS,
            ],
            ..of_type
        },
        PortType::Rates => Requirements {
            columns: RATES.to_vec(),
            key: "date and tenor_years",
            checks: &[
                FINITE,
                UNIQUE,
                "rates are annual decimals (0.05 is 5 %), tenors are not negative",
            ],
            ..of_type
        },
        PortType::CorporateActions => Requirements {
            columns: CORPORATE_ACTIONS.to_vec(),
            alternatives: &[("origin", "where it is from; `file` where it is left out")],
            key: "symbol, date and kind",
            checks: &[
                FINITE,
                UNIQUE,
                "a split and a stock dividend have a ratio above 0, a dividend of cash an amount above 0, a \
                change of symbol the new one",
            ],
            ..of_type
        },
        PortType::Greeks => Requirements {
            columns: GREEKS.iter().chain([&SNAPSHOT]).copied().collect(),
            alternatives: &[CLASS, INSTANT],
            key: "symbol, date or snapshot, expiry, root, strike and call",
            checks: &[
                FINITE,
                UNIQUE,
                "an environment needs the rows of its chain, all of them and no others",
                PARTITIONS,
            ],
            ..of_type
        },
        PortType::Env => Requirements {
            form: "a directory with the files that `runner export RUN/STAGE.env DIR` writes, or that a \
                program finds at its input of the type, changed or not; and a file `family`",
            checks: &[
                "`family` holds one word: classic, hedging, lookup, options, stocks or table",
                "`env.json`, the specification, has all that its family writes",
                "tables are Arrow IPC, not compressed, with the columns and rows that the specification \
                states",
                "each split opens, and its first observation is finite and as long as the specification says",
                "`check lookahead` compares the tables of `options`, `stocks` and `table` as it does those \
                of the built-in stages",
            ],
            ..of_type
        },
        PortType::Policy => Requirements {
            form: "a file of safetensors, as `runner policy export --format safetensors` writes it",
            checks: &[
                "the metadata entry `runner` is JSON: format, kind, architecture, env and \
                observation_normalisation (docs/reading-policies.md)",
                "the tensors are those of the architecture, with their names and shapes, as 32-bit floats, \
                and no others",
                "numbers are finite",
                "observations and actions fit the environment where it is evaluated or trained on",
            ],
            ..of_type
        },
        PortType::Metrics => Requirements {
            form: "a file of JSON, or a directory of them: an object of figures, `{\"sharpe\": 1.2}`, or a \
                line for each value, `{\"name\": \"sharpe\", \"step\": 0, \"value\": 1.2}`",
            checks: &[
                "a value is a number, or null where there is none; a step is a whole number, 0 where it is \
                left out",
                "a name has one value at a step; the last is its final value",
                "the output has the name `metrics`: `compare`, `show` and `runs --where` read that one of a \
                stage",
            ],
            ..of_type
        },
        PortType::Knowledge | PortType::Trajectory | PortType::File => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed_output::{TYPES, is_data_set};

    #[test]
    fn every_type_that_programs_write_has_some() {
        for ty in TYPES {
            let of = requirements(ty).unwrap();
            assert_eq!(of.columns.is_empty(), !is_data_set(ty), "{ty:?}");
            for (name, _) in of.alternatives {
                assert!(of.columns.iter().any(|column| column.name == *name), "{name}");
            }
        }
        assert!(requirements(PortType::File).is_none());
    }
}
