//! The Greeks that a stage can write.

use crate::numerics::batch::{Columns, GreekColumns};
use crate::numerics::formula::{Contract, Model, further};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datasets::schema::{Column, GREEKS, SNAPSHOT, Type};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::Partition;
use stages_core::names;
use stages_core::table::Origin;
use stages_core::{ConfigProblem, Context, StageError, table};
use std::sync::Arc;

/// A column of Greeks. The first nine come from the batch kernel; the others follow from them row by row, and
/// are null where time or volatility is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Model price, in currency.
    Price,
    /// dV/dS.
    Delta,
    /// d2V/dS2.
    Gamma,
    /// dV/dsigma per 1.00 of volatility.
    Vega,
    /// dV/dt per year of calendar time passing.
    Theta,
    /// dV/dr per 1.00 of rate.
    Rho,
    /// d2V/dS dsigma per 1.00 of volatility.
    Vanna,
    /// d2V/dsigma2 per 1.00 of volatility squared.
    Volga,
    /// d(delta)/dt per year of calendar time passing.
    Charm,
    /// dV/dq per 1.00 of yield, also called epsilon; of Black-Scholes-Merton alone.
    Phi,
    /// d2V/dsigma dT: by time to maturity, not by calendar time.
    Veta,
    /// d3V/dS3.
    Speed,
    /// d3V/dS2 dsigma.
    Zomma,
    /// d3V/dS2 dT: by time to maturity, not by calendar time.
    Color,
    /// d3V/dsigma3.
    Ultima,
    /// dV/dK.
    DualDelta,
    /// d2V/dK2, the density of the spot at expiry, discounted.
    DualGamma,
}

/// The key columns of a table of Greeks, which precede the Greeks.
pub(super) const KEYS: &[Column] = GREEKS.split_at(GREEKS.len() - STANDARD).0;
/// The number of default outputs, which every table of Greeks has: the first ones of [`Output::ALL`].
const STANDARD: usize = 9;

const fn column(name: &'static str, doc: &'static str) -> Column {
    Column {
        name,
        ty: Type::Float,
        nullable: true,
        doc,
    }
}

/// The columns of the outputs beyond the first nine.
const FURTHER: [Column; 8] = [
    column("phi", "dV/dq per 1.00 of yield"),
    column("veta", "d2V/dsigma dT by time to maturity"),
    column("speed", "d3V/dS3"),
    column("zomma", "d3V/dS2 dsigma per 1.00 of volatility"),
    column("color", "d3V/dS2 dT by time to maturity"),
    column("ultima", "d3V/dsigma3 per 1.00 of volatility cubed"),
    column("dual_delta", "dV/dK"),
    column("dual_gamma", "d2V/dK2"),
];

names! {
    Output: Price, Delta, Gamma, Vega, Theta, Rho, Vanna, Volga, Charm, Phi, Veta, Speed, Zomma,
        Color, Ultima, DualDelta, DualGamma
}

impl Output {
    /// The outputs that every table of Greeks has by default.
    pub fn standard() -> Vec<Self> {
        Self::ALL[..STANDARD].to_vec()
    }

    /// The column of this output.
    pub fn column(self) -> &'static Column {
        let i = self as usize;
        match i.checked_sub(STANDARD) {
            None => &GREEKS[KEYS.len() + i],
            Some(i) => &FURTHER[i],
        }
    }
}

/// A table of Greeks beside a chain: the keys of the chain's rows, and columns of values.
pub(super) fn beside<'a>(
    chain: &RecordBatch,
    columns: impl IntoIterator<Item = (&'a Column, &'a Vec<f64>)>,
) -> Result<RecordBatch, StageError> {
    let (mut fields, mut arrays) = table::key_columns(chain, KEYS)?;
    for (column, values) in columns {
        fields.push(table::field(column));
        arrays.push(Arc::new(table::nullable(values)));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Encodes a table of Greeks beside a partition of the chain, whose keys it repeats.
pub(super) fn to_parquet(
    greeks: &RecordBatch,
    chain: &Partition,
    context: &Context,
) -> Result<Vec<u8>, StageError> {
    let is_key = |name: &str| name == SNAPSHOT.name || KEYS.iter().any(|key| key.name == name);
    table::extended_to_parquet(greeks, context.store.blob(chain.blob.blob)?, |name| {
        if is_key(name) { Origin::Source } else { Origin::Plain }
    })
}

/// Refuses an empty list, a repeated output, and derivatives by the yield for a model without one.
pub(super) fn check(outputs: &[Output], model: Model) -> Result<(), ConfigProblem> {
    ConfigProblem::new("outputs", "no output is listed")
        .hint("name at least one, such as [price, delta], or leave `outputs` out for the nine usual ones")
        .when(outputs.is_empty())?;
    for (i, output) in outputs.iter().enumerate() {
        let place = format!("outputs[{i}]");
        let name = output.column().name;
        ConfigProblem::new(&place, format!("`{name}` is listed twice"))
            .hint("remove one of them")
            .when(outputs[..i].contains(output))?;
        ConfigProblem::new(place, "`phi` is the derivative by the yield, and Black-76 has none")
            .hint("remove `phi`, or use `model: black_scholes_merton`")
            .when(*output == Output::Phi && model == Model::Black76)?;
    }
    Ok(())
}

/// The columns of `outputs`, in their order, computed from the nine `standard` ones where necessary.
pub(super) fn select(
    outputs: &[Output],
    columns: &Columns<'_>,
    standard: GreekColumns,
    model: Model,
) -> Vec<Vec<f64>> {
    let wants_more = outputs.iter().any(|output| *output as usize >= STANDARD);
    let more: Vec<[f64; 8]> = if wants_more {
        (0..columns.len())
            .into_par_iter()
            .map(|i| further_of(&columns.option(i), model))
            .collect()
    } else {
        Vec::new()
    };
    let mut standard = standard.map(Some);
    outputs
        .iter()
        .map(|output| match (*output as usize).checked_sub(STANDARD) {
            None => standard[*output as usize].take().unwrap_or_default(),
            Some(i) => more.iter().map(|row| row[i]).collect(),
        })
        .collect()
}

fn further_of(option: &Contract, model: Model) -> [f64; 8] {
    // Apart from rho, which is not computed here, Black-76 is Black-Scholes-Merton on the forward with the
    // rate as yield.
    let option = match model {
        Model::BlackScholesMerton => *option,
        Model::Black76 => Contract {
            dividend_yield: option.rate,
            ..*option
        },
    };
    further(&option).to_array()
}
