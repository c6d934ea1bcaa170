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
    /// The named columns of a data set. A column that is not nullable is required, unless it is in
    /// `alternatives`.
    pub columns: Vec<Column>,
    /// Columns that may be left out although they are not nullable, each with the value that replaces it.
    pub alternatives: Vec<(&'static str, &'static str)>,
    /// The further columns that are allowed; `None` if there are none.
    pub others: Option<&'static str>,
    /// The columns that form the key of a row; empty for types without rows.
    pub key: &'static str,
    /// The checks of values, one line each.
    pub checks: Vec<&'static str>,
}

/// The form of the files of a data set.
const TABLES: &str = "a file of Parquet or CSV, or a directory of them, in any order";

/// The requirements of a type; `None` for types that programs cannot write.
pub fn requirements(ty: PortType) -> Option<Requirements> {
    let mut lines = include_str!("requirements.txt").lines();
    lines.find(|line| *line == ty.name())?;
    let lines: Vec<&str> = lines.map_while(|line| line.strip_prefix("  ")).collect();
    let all = |what: &'static str| {
        lines
            .iter()
            .filter_map(move |line| line.strip_prefix(what)?.strip_prefix(": "))
    };
    let column = |line: &&'static str| line.strip_prefix("column ")?.split_once(": ");
    Some(Requirements {
        form: all("form").next().unwrap_or(TABLES),
        columns: columns(ty),
        alternatives: lines.iter().filter_map(column).collect(),
        others: all("others").next(),
        key: all("key").next().unwrap_or_default(),
        checks: all("check").collect(),
    })
}

fn columns(ty: PortType) -> Vec<Column> {
    match ty {
        PortType::Features => FEATURES.iter().chain([&SNAPSHOT]).chain(CONTRACT).copied().collect(),
        PortType::Table => TABLE.iter().chain([&SNAPSHOT]).copied().collect(),
        PortType::Bars => BARS.to_vec(),
        PortType::OptionChain => {
            let quotes = OPTION_CHAIN.iter().chain([&SNAPSHOT]);
            quotes.chain(chain::optional()).chain(CONTRACT_TERMS).copied().collect()
        }
        PortType::Rates => RATES.to_vec(),
        PortType::CorporateActions => CORPORATE_ACTIONS.to_vec(),
        PortType::Greeks => GREEKS.iter().chain([&SNAPSHOT]).copied().collect(),
        _ => Vec::new(),
    }
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
            for (name, _) in &of.alternatives {
                assert!(of.columns.iter().any(|column| column.name == *name), "{name}");
            }
        }
        assert!(requirements(PortType::File).is_none());
    }
}
