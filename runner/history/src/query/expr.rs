//! The syntax tree of an expression.

use chrono::{DateTime, Utc};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    /// Existence: the run has the key.
    Has(Key),
    Compare(Key, Op, Operand),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    /// `~`
    Contains,
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Literal(Literal),
    Key(Key),
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Literal {
    pub text: String,
    pub meaning: Meaning,
}

/// The meaning of a literal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    /// A number; a duration is converted to seconds.
    Number(f64),
    /// A span of time (a day, minute or second): start (included) and end (excluded).
    Time(DateTime<Utc>, DateTime<Utc>),
    /// Any other text.
    Text,
}

/// A value of a run, or an aggregate of several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The text as written.
    pub text: String,
    pub(crate) fold: Option<Fold>,
    pub(crate) name: Name,
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Mean,
    /// The sample standard deviation.
    Sd,
    Min,
    Max,
    Count,
}

/// A name of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Name {
    /// The run's id.
    Id,
    Status,
    Pipeline,
    /// The run's name.
    Called,
    Tag,
    Kept,
    /// The start time.
    Started,
    /// The age in seconds.
    Age,
    /// The duration in seconds.
    Seconds,
    /// A parameter.
    Param(String),
    /// A value of a stage.
    Of(StageName, What),
}

/// A stage, or some of its matrix points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StageName {
    pub stage: String,
    /// The axes and values of the matrix point.
    pub point: Vec<(String, String)>,
}

/// A value of a stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A field of the stage's configuration.
    With(String),
    Status,
    /// The stage's duration when it was computed, in seconds.
    Seconds,
    /// The final value of a metric.
    Metric(String),
}

/// The names that every run has.
pub(crate) const FIXED: [(&str, Name); 10] = [
    ("id", Name::Id),
    ("status", Name::Status),
    ("pipeline", Name::Pipeline),
    ("name", Name::Called),
    ("tag", Name::Tag),
    ("kept", Name::Kept),
    ("started", Name::Started),
    ("age", Name::Age),
    ("duration", Name::Seconds),
    ("seconds", Name::Seconds),
];

impl Expr {
    /// The keys of the expression.
    pub(crate) fn keys(&self) -> Vec<&Key> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::keys).collect(),
            Self::Not(part) => part.keys(),
            Self::Has(key) | Self::Compare(key, _, Operand::Literal(_)) => vec![key],
            Self::Compare(left, _, Operand::Key(right)) => vec![left, right],
        }
    }
}
