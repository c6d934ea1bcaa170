//! Refuses contracts that a model of Greeks cannot price.

use arrow_array::RecordBatch;
use datasets::contract::{Contracts, Exercise, Origin, can_be_carried};
use stages_core::{ConfigProblem, PlanContext, StageError};

/// Refuses a chain with contracts of another exercise style than `exercise`, which the model prices.
///
/// # Errors
/// The first class of another style.
pub(super) fn only(exercise: Exercise, contracts: &Contracts, kind: &str) -> Result<(), StageError> {
    for (root, facts) in contracts.iter() {
        if let Some(is) = facts.terms.exercise.filter(|is| *is != exercise) {
            let origin = facts.origin.get("exercise").copied();
            return Err(other_style(kind, exercise, root, is, origin));
        }
    }
    Ok(())
}

/// Refuses, at plan time, a chain configured with contracts of another exercise style than the model's.
pub(super) fn check_exercise(
    exercise: Exercise,
    plan: &PlanContext,
    kind: &str,
) -> Result<(), ConfigProblem> {
    let chain = plan.inputs.get("chain").and_then(|list| list.first());
    match chain.and_then(|chain| chain.exercise) {
        Some(is) if is != exercise => {
            Err(other_style(kind, exercise, "the chain", is, Some(Origin::Config)).at(""))
        }
        _ => Ok(()),
    }
}

/// The error of a model of one exercise style that meets contracts of the other.
fn other_style(
    kind: &str,
    exercise: Exercise,
    whose: &str,
    is: Exercise,
    origin: Option<Origin>,
) -> StageError {
    let origin = origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
    let other = match exercise {
        Exercise::European => {
            "use `greeks/american`, after `greeks/implied_volatility`, which takes the style from the chain"
        }
        Exercise::American => "use `greeks/analytic`",
    };
    StageError::new(format!(
        "`{kind}` prices {exercise} contracts, and those of {whose} are {is}{origin}"
    ))
    .hint(format!(
        "{other}; if the chain is wrong, or the price of the other style is near enough, state `contract: \
         {{ exercise: {exercise} }}` in the stage \
         that reads it"
    ))
}

/// Refuses contracts whose underlying cannot be carried, if the forward is to follow from its price.
///
/// # Errors
/// The first class whose underlying cannot be carried.
pub(super) fn only_carried(contracts: &Contracts, what: &str, way_out: &str) -> Result<(), StageError> {
    match contracts.iter().find(|(_, facts)| !can_be_carried(&facts.symbol)) {
        None => Ok(()),
        Some((root, facts)) => Err(StageError::new(format!(
            "{what} takes the forward of the contracts of {root} from the price of {}, which nobody can buy \
             and hold: its options are carried by \
             its futures",
            facts.symbol
        ))
        .hint(way_out)),
    }
}

/// Refuses a table without forwards if the underlying of its contracts cannot be carried.
///
/// # Errors
/// The first class whose underlying cannot be carried.
pub(super) fn with_forward(
    batch: RecordBatch,
    contracts: &Contracts,
    kind: &str,
) -> Result<RecordBatch, StageError> {
    if batch.column_by_name("forward").is_none() {
        let way_out =
            "put `greeks/implied_volatility` before this stage: it takes the forward from calls and puts";
        only_carried(contracts, &format!("`{kind}`, without a column `forward`,"), way_out)?;
    }
    Ok(batch)
}
