//! Evaluates expressions and keys for a run.

use super::expr::{Expr, FIXED, Fold, Key, Literal, Meaning, Name, Op, Operand};
use super::subject::{Subject, Value};
use runner_engine::{Failure, text};
use runner_pipeline::suggest;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// True if an expression holds for a run.
pub(crate) fn matches(expr: &Expr, subject: &Subject<'_>) -> bool {
    match expr {
        Expr::All(parts) => parts.iter().all(|part| matches(part, subject)),
        Expr::Any(parts) => parts.iter().any(|part| matches(part, subject)),
        Expr::Not(part) => !matches(part, subject),
        Expr::Has(key) => values(key, subject).iter().any(|value| *value != Value::Bool(false)),
        Expr::Compare(key, op, operand) => {
            let left = values(key, subject);
            let any = |op: Op| match operand {
                Operand::Literal(literal) => left.iter().any(|value| with_literal(value, op, literal)),
                Operand::Key(right) => {
                    let right = values(right, subject);
                    left.iter()
                        .any(|left| right.iter().any(|right| with_value(left, op, right)))
                }
            };
            match op {
                // A missing value is not unequal to anything, but a run without tags satisfies `tag != bad`.
                Op::NotEqual => (!left.is_empty() || key.is_fixed()) && !any(Op::Equal),
                _ => any(*op),
            }
        }
    }
}

impl Key {
    /// True if the key exists for every run.
    pub(crate) fn is_fixed(&self) -> bool {
        FIXED.iter().any(|(_, name)| *name == self.name)
    }
}

/// True if a run has a value for the key.
pub(crate) fn has(key: &Key, subject: &Subject<'_>) -> bool {
    !subject.values(&key.name).is_empty()
}

/// The values of a key for a run, aggregated if the key has an aggregate function.
fn values(key: &Key, subject: &Subject<'_>) -> Vec<Value> {
    let values = subject.values(&key.name);
    let Some(fold) = key.fold else { return values };
    if values.is_empty() {
        return Vec::new();
    }
    let numbers: Vec<f64> = values
        .iter()
        .filter_map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
        .collect();
    let spread = crate::compare::Spread::of(&numbers);
    let folded = match fold {
        Fold::Count => Some(values.len() as f64),
        Fold::Mean => spread.map(|spread| spread.mean),
        Fold::Sd => spread.and_then(|spread| spread.sd),
        Fold::Min => spread.map(|spread| spread.min),
        Fold::Max => spread.map(|spread| spread.max),
    };
    folded.map(Value::Number).into_iter().collect()
}

fn holds(op: Op, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return false };
    match op {
        Op::Less => order.is_lt(),
        Op::LessEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        Op::GreaterEqual => order.is_ge(),
        Op::Equal => order.is_eq(),
        Op::NotEqual | Op::Contains => false,
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn with_literal(value: &Value, op: Op, literal: &Literal) -> bool {
    if op == Op::Contains {
        return contains(&value.spelled(), &literal.text);
    }
    let order = match (value, &literal.meaning) {
        (Value::Number(left), Meaning::Number(right)) => left.partial_cmp(right),
        (Value::Number(left), _) => literal
            .text
            .parse::<f64>()
            .ok()
            .and_then(|right| left.partial_cmp(&right)),
        // A time within a span is equal to it.
        (Value::Time(time), Meaning::Time(from, _)) if time < from => Some(Ordering::Less),
        (Value::Time(time), Meaning::Time(_, until)) if time >= until => Some(Ordering::Greater),
        (Value::Time(_), Meaning::Time(..)) => Some(Ordering::Equal),
        (Value::Time(_), _) => None,
        (Value::Text(left), Meaning::Number(right)) if op != Op::Equal => {
            left.parse::<f64>().ok().and_then(|left| left.partial_cmp(right))
        }
        (Value::Text(left), _) => Some(left.as_str().cmp(&literal.text)),
        (Value::Bool(left), _) => (left.to_string() == literal.text).then_some(Ordering::Equal),
    };
    holds(op, order)
}

fn with_value(left: &Value, op: Op, right: &Value) -> bool {
    match (left, right) {
        _ if op == Op::Contains => contains(&left.spelled(), &right.spelled()),
        (Value::Number(left), Value::Number(right)) => holds(op, left.partial_cmp(right)),
        (Value::Time(left), Value::Time(right)) => holds(op, Some(left.cmp(right))),
        (Value::Text(left), Value::Text(right)) => holds(op, Some(left.cmp(right))),
        (Value::Bool(left), Value::Bool(right)) => op == Op::Equal && left == right,
        _ => false,
    }
}

/// The value of a key for a run, for tables and sorting.
#[derive(Clone, Debug, Default)]
pub struct Cell(Vec<Value>);

/// The value of a key for a run.
pub(crate) fn value(key: &Key, subject: &Subject<'_>) -> Cell {
    Cell(values(key, subject))
}

impl Cell {
    /// The value as JSON: `null`, a value, or a list of values.
    pub fn to_json(&self) -> serde_json::Value {
        match self.0.as_slice() {
            [] => serde_json::Value::Null,
            [only] => only.to_json(),
            several => several.iter().map(Value::to_json).collect(),
        }
    }

    /// The value as text: for several numbers, their mean, sample standard deviation and count.
    pub fn shown(&self) -> String {
        if let [only] = self.0.as_slice() {
            return match only {
                Value::Number(number) => text::figure(*number),
                Value::Time(time) => time.format("%Y-%m-%d %H:%M UTC").to_string(),
                other => other.spelled(),
            };
        }
        if let Some(spread) = self.spread() {
            return format!("{} (n={})", spread.shown(), spread.n);
        }
        let mut texts: Vec<String> = self.0.iter().map(Value::spelled).collect();
        texts.dedup();
        texts.join(", ")
    }

    /// The statistics of the values, if all of them are numbers.
    fn spread(&self) -> Option<crate::compare::Spread> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let numbers: Option<Vec<f64>> = self.0.iter().map(number).collect();
        crate::compare::Spread::of(&numbers?)
    }
}

/// The order of two cells: numbers before times, Booleans and texts; several numbers count as their mean;
/// missing values last.
pub(crate) fn order(left: &Cell, right: &Cell, descending: bool) -> Ordering {
    let rank = |cell: &Cell| match (cell.spread(), cell.0.first()) {
        (Some(_), _) => 0,
        (None, Some(Value::Time(_))) => 1,
        (None, Some(Value::Bool(_))) => 2,
        (None, Some(_)) => 3,
        (None, None) => 4,
    };
    let turn = |order: Ordering| if descending { order.reverse() } else { order };
    rank(left).cmp(&rank(right)).then_with(|| {
        turn(match (left.spread(), right.spread(), left.0.first(), right.0.first()) {
            (Some(left), Some(right), ..) => left.mean.total_cmp(&right.mean),
            (.., Some(Value::Time(left)), Some(Value::Time(right))) => left.cmp(right),
            (.., Some(left), Some(right)) => left.spelled().cmp(&right.spelled()),
            _ => Ordering::Equal,
        })
    })
}

/// The number of runs that are searched for suggestions.
const MOST_ASKED: usize = 50;

/// The failure for a key that none of the runs has. `subjects` are sorted, the newest last.
pub(crate) fn unknown(key: &Key, subjects: &[Subject<'_>]) -> Failure {
    let asked = || subjects.iter().rev().take(MOST_ASKED);
    let failure = |what: String, wanted: &str, known: BTreeSet<String>, plural: &str| {
        Failure::usage(what).hint(suggest(wanted, plural, known.iter().map(String::as_str)))
    };
    let (stage, wanted) = match &key.name {
        Name::Of(stage, _) => (stage.stage.as_str(), without_point(&key.name)),
        Name::Param(path) => ("params", format!("params.{path}")),
        _ => ("", key.text.clone()),
    };
    let stages: BTreeSet<String> = subjects
        .iter()
        .flat_map(|subject| subject.run.stages.iter().map(|stage| stage.stage.clone()))
        .collect();
    if stage != "params" && !stages.contains(stage) {
        let hint = suggest(stage, "stages", stages.iter().map(String::as_str));
        return Failure::usage(format!("no run has a stage `{stage}`"))
            .hint(format!("{hint}; quote a string that contains a dot"));
    }
    let known: BTreeSet<String> = asked().flat_map(|subject| subject.names(stage)).collect();
    if known.contains(&wanted) {
        return Failure::usage(format!("no run has `{}`", key.text)).hint(
            "the stage has it, but not at this point of its matrix; `runner show RUN` lists the points",
        );
    }
    failure(format!("no run has `{}`", key.text), &wanted, known, "names")
}

fn without_point(name: &Name) -> String {
    use super::expr::What;
    let Name::Of(stage, what) = name else {
        return String::new();
    };
    let rest = match what {
        What::With(path) => format!("with.{path}"),
        What::Status => "status".to_owned(),
        What::Seconds => "seconds".to_owned(),
        What::Metric(name) => name.clone(),
    };
    format!("{}.{rest}", stage.stage)
}
