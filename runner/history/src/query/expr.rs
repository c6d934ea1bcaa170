//! An expression, read.

use chrono::{DateTime, Utc};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All hold.
    All(Vec<Expr>),
    /// One holds at least.
    Any(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// The run has it.
    Has(Key),
    /// A comparison.
    Compare(Key, Op, Operand),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==` or `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `~`
    Contains,
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value as it is written.
    Literal(Literal),
    /// Another value of the run.
    Key(Key),
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// As it stands there, without quotes.
    pub text: String,
    /// What it is read as.
    pub meaning: Meaning,
}

/// What a literal is read as.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// A number; of a duration, its seconds.
    Number(f64),
    /// A span of time: a whole day, minute or second. From, until (excluded).
    Time(DateTime<Utc>, DateTime<Utc>),
    /// Anything else.
    Text,
}

/// A value of a run, or a figure of several of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// As it is written.
    pub text: String,
    /// What becomes of several values.
    pub fold: Option<Fold>,
    /// Whose values.
    pub name: Name,
}

/// A figure of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Their mean.
    Mean,
    /// Their sample standard deviation.
    Sd,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// How many there are.
    Count,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// The run's id.
    Id,
    /// How it ended.
    Status,
    /// The pipeline's name.
    Pipeline,
    /// The name that it was given.
    Called,
    /// Its tags.
    Tag,
    /// Whether it is kept.
    Kept,
    /// When it began.
    Started,
    /// How many seconds ago that was.
    Age,
    /// How long it took.
    Seconds,
    /// A parameter.
    Param(String),
    /// Something of a stage.
    Of(StageName, What),
}

/// A stage, or some points of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StageName {
    /// Its name.
    pub stage: String,
    /// Axes and values that its point has.
    pub point: Vec<(String, String)>,
}

/// What of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A field of its configuration.
    With(String),
    /// How it ended.
    Status,
    /// How long it took when it was computed.
    Seconds,
    /// The final value of a metric.
    Metric(String),
}

/// What is always there, by name.
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
    /// The keys in it.
    pub fn keys(&self) -> Vec<&Key> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::keys).collect(),
            Self::Not(part) => part.keys(),
            Self::Has(key) | Self::Compare(key, _, Operand::Literal(_)) => vec![key],
            Self::Compare(left, _, Operand::Key(right)) => vec![left, right],
        }
    }
}
