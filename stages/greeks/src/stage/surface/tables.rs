//! The tables made from a surface: a volatility for every contract, and features.

use super::config::SurfaceConfig;
use super::days::{Chain, Days};
use crate::numerics::surface::Surface;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use stages_core::{StageError, table};
use std::sync::Arc;

/// The column that is added to a chain.
pub(super) const FITTED: &str = "iv_fitted";

/// Adds the surface's volatilities to a chain.
pub(super) fn mark(
    batch: &RecordBatch,
    days: &Days,
    config: &SurfaceConfig,
) -> Result<RecordBatch, StageError> {
    let chain = Chain::new(batch, config)?;
    let none = Surface::default();
    let mut fitted = Vec::with_capacity(batch.num_rows());
    for day in table::runs(0..batch.num_rows(), |a, b| chain.times[a] == chain.times[b]) {
        let surface = days
            .binary_search_by_key(&chain.times[day.start], |(time, _)| *time)
            .map_or(&none, |i| &days[i].1);
        for expiry in table::runs(day, |a, b| chain.years[a] == chain.years[b]) {
            let smile = surface.at(chain.years[expiry.start]);
            fitted.extend(chain.fitted(expiry, smile.as_ref()));
        }
    }
    let volatility: Vec<f64> = chain
        .volatility
        .iter()
        .zip(&fitted)
        .map(|(quoted, fitted)| if quoted.is_nan() { *fitted } else { *quoted })
        .collect();
    let mut fields: Vec<Arc<Field>> = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if field.name() == FITTED {
            continue;
        }
        fields.push(field.clone());
        arrays.push(if field.name() == "implied_volatility" {
            Arc::new(table::nullable(&volatility))
        } else {
            array.clone()
        });
    }
    fields.push(Arc::new(Field::new(FITTED, DataType::Float64, true)));
    arrays.push(Arc::new(table::nullable(&fitted)));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// A row of features for each snapshot, with columns in the order of [`SurfaceConfig::features`].
pub(super) fn features(symbol: &str, days: &Days, config: &SurfaceConfig) -> Result<RecordBatch, StageError> {
    let names = config.features();
    let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(days.len()); names.len()];
    for (_, surface) in days {
        for (column, value) in columns.iter_mut().zip(row(surface, config)) {
            column.push(value);
        }
    }
    let times = days.iter().map(|(time, _)| *time);
    let (mut fields, mut arrays) = table::feature_keys(std::iter::repeat_n(symbol, days.len()), times);
    for (name, column) in names.iter().zip(&columns) {
        fields.push(Field::new(name, DataType::Float64, true));
        arrays.push(Arc::new(table::nullable(column)));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn row(surface: &Surface, config: &SurfaceConfig) -> Vec<f64> {
    let mut values = Vec::new();
    for &days in &config.maturities {
        let years = f64::from(days) / 365.0;
        let smile = surface.at(years);
        let at = |k: f64| smile.as_ref().map_or(f64::NAN, |smile| smile.volatility(k));
        values.push(at(0.0));
        for call in [false, true] {
            values.extend(config.deltas.iter().map(|&delta| {
                let k = smile
                    .as_ref()
                    .map_or(f64::NAN, |smile| smile.log_moneyness_of(delta, call));
                if k.is_nan() { k } else { at(k) }
            }));
        }
    }
    values.push(surface.residual());
    values
}
