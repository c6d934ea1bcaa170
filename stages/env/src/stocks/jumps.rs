//! Jumps of prices that no news makes and no corporate action explains.

use super::build::Bar;
use super::config::{Prices, StocksConfig};
use datasets::adjusted::{ACCEPTED, Adjusted, JUMPS};
use datasets::corporate_action::{BySymbol, CorporateAction, Kind};
use datasets::quality::{Level, Shape};
use stages_core::dataset::DataSet;
use stages_core::{StageError, corporate_actions};
use std::collections::BTreeMap;

/// Refuses bars whose prices change from one to the next by the ratio of a split or of a unit, unless a
/// corporate action explains it, or the stage that reads the bars is told to keep it; `actions` are those of
/// the port, if it is connected.
pub(super) fn refuse(
    config: &StocksConfig,
    set: &DataSet,
    bars: &BTreeMap<String, Vec<Bar>>,
    actions: Option<&[CorporateAction]>,
) -> Result<(), StageError> {
    let stated = corporate_actions::stated(set);
    // Where splits are listed, one that is not is missing, whatever the others' prices are adjusted for.
    let has_no_splits = actions.is_none()
        && config.prices == Prices::Close
        && stated
            .is_some_and(|stated| stated.origin == "configuration" && stated.value != Adjusted::Unadjusted);
    let is_kept = |rule: &str| {
        let kept = set.meta[ACCEPTED].as_array();
        kept.is_some_and(|kept| kept.iter().any(|kept| *kept == rule))
    };
    let [unit, split] = JUMPS.map(is_kept);
    let is_held = |symbol: &str| {
        config.symbols.is_empty()
            || config.symbols.iter().any(|held| held == symbol)
            || config.hedge.symbol() == Some(symbol)
    };
    let listed = BySymbol::new(actions.unwrap_or_default());
    let (mut first, mut more) = (None, 0);
    for (symbol, bars) in bars.iter().filter(|(symbol, _)| is_held(symbol)) {
        let own: Vec<&CorporateAction> = listed
            .of(symbol)
            .filter(|action| matches!(action.kind, Kind::Split | Kind::StockDividend))
            .collect();
        let mut level = Level::default();
        for bar in bars.iter().filter(|bar| bar.close > 0.0) {
            let factor = match config.prices {
                Prices::Close => 1.0,
                Prices::AdjustedClose => bar.adjusted_close / bar.close,
            };
            if factor.is_nan() || factor <= 0.0 {
                continue;
            }
            let (close, volume) = (bar.close * factor, bar.volume);
            let jump = level.jump(bar.date, bar.open * factor, close, volume);
            level.take(bar.date, close, volume, jump.as_ref());
            let Some(jump) = jump else { continue };
            let is_explained = match jump.shape {
                Shape::News => true,
                Shape::Unit => unit,
                Shape::Split(_) => {
                    let explains =
                        |action: &&CorporateAction| jump.before < action.date && action.date <= bar.date;
                    split || has_no_splits || own.iter().any(explains)
                }
            };
            if !is_explained {
                more += 1;
                first.get_or_insert_with(|| (symbol.clone(), bar.date, close, jump));
            }
        }
    }
    let Some((symbol, date, close, jump)) = first else {
        return Ok(());
    };
    let more = match more {
        1 => String::new(),
        more => format!("; and {} more such jumps", more - 1),
    };
    let found = format!("`{symbol}`: the close of {date}, {close}, is {jump}");
    if config.prices == Prices::AdjustedClose {
        return Err(StageError::new(format!("{found}, in adjusted closes{more}")).hint(
            "an adjusted close has no splits: correct the file's adjusted closes, take those of one unit and \
                one download, or use `prices: close` with `actions`; `on_bad_rows: { unit_jump: keep, \
                split_jump: keep }` of `ingest/bars` takes the prices as they are",
        ));
    }
    Err(match jump.shape {
        Shape::Unit => StageError::new(format!("{found}: another unit or decimal point{more}")).hint(
            "correct the file, or name the unit in its layout; `on_bad_rows: { unit_jump: keep }` of \
                `ingest/bars` takes the prices as they are",
        ),
        _ => StageError::new(format!("{found} split, which no corporate action explains{more}")).hint(
            match actions {
                None => {
                    "connect `actions`: a stage `ingest/corporate_actions` that has the split; or state at \
                        `ingest/bars` that there is none: `adjusted: splits`, or `on_bad_rows: { split_jump: \
                        keep }`"
                }
                Some(_) => {
                    "add the split to the actions, and take those that the prices have already out of them; \
                        or divide the earlier prices in the file; or state at `ingest/bars` that there is \
                        none: `on_bad_rows: { split_jump: keep }`"
                }
            },
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;
    use serde_json::{Value, json};

    /// Closes of one symbol, which are 100 or 101 but for a factor from a day on.
    fn refused(factor: f64, meta: Value, actions: Option<&[CorporateAction]>) -> Option<String> {
        refused_of(&StocksConfig::default(), factor, meta, actions)
    }

    fn refused_of(
        config: &StocksConfig,
        factor: f64,
        meta: Value,
        actions: Option<&[CorporateAction]>,
    ) -> Option<String> {
        let bar = |day: i32| {
            let whole = 100.0 + f64::from(day % 2);
            let scaled = whole * if day < 40 { 1.0 } else { factor };
            let is_plain = config.prices == Prices::Close;
            let close = if is_plain { scaled } else { whole };
            Bar {
                date: Date(day),
                open: close,
                close,
                adjusted_close: if is_plain { f64::NAN } else { scaled },
                volume: 1000.0,
            }
        };
        let bars = BTreeMap::from([("X".to_owned(), (0..60).map(bar).collect())]);
        let set = DataSet {
            meta,
            partitions: Vec::new(),
        };
        let refused = refuse(config, &set, &bars, actions).err();
        refused.map(|err| err.to_string())
    }

    #[test]
    fn jumps_without_a_reason_are_refused() {
        let split = CorporateAction {
            symbol: "X".to_owned(),
            date: Date(40),
            kind: Kind::Split,
            ratio: 2.0,
            amount: f64::NAN,
            new_symbol: String::new(),
            origin: "test".to_owned(),
        };
        let err = refused(0.5, json!({}), None).unwrap();
        assert!(
            err.contains("`X`: the close of 1970-02-10, 50, is") && err.contains("2-for-1 split"),
            "{err}"
        );
        assert_eq!(refused(0.5, json!({}), Some(&[split])), None);
        assert_eq!(refused(0.5, json!({ "accepted": ["split_jump"] }), None), None);
        let stated =
            |origin: &str| json!({ "facts": { "adjusted": { "value": "splits", "origin": origin } } });
        assert_eq!(refused(0.5, stated("configuration"), None), None);
        assert!(
            refused(0.5, stated("configuration"), Some(&[])).is_some(),
            "actions are listed, and not this one"
        );
        let adjusted = StocksConfig {
            prices: Prices::AdjustedClose,
            ..StocksConfig::default()
        };
        for factor in [0.5, 0.01, 100.0] {
            let err = refused_of(&adjusted, factor, stated("configuration"), None).unwrap();
            assert!(err.contains("in adjusted closes"), "{err}");
        }
        assert_eq!(refused_of(&adjusted, 1.0, json!({}), None), None);
        assert!(
            refused(0.5, stated("layout yahoo"), None).is_some(),
            "a vendor may have forgotten one"
        );
        assert!(
            refused(0.01, json!({}), None)
                .unwrap()
                .contains("another unit or decimal point")
        );
        assert_eq!(refused(0.01, json!({ "accepted": ["unit_jump"] }), None), None);
        assert_eq!(refused(0.6, json!({}), None), None, "news");
        assert_eq!(refused(1.8, json!({}), None), None, "news");
    }
}
