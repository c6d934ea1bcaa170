//! The rows of a summary: agents, then baselines, each with a cell for each figure.

use crate::evaluation::{Values, names};
use crate::figures::{self, Unit};
use runner_history::compare::Spread;
use stages_core::Input;
use std::collections::{BTreeMap, BTreeSet};

/// The role of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Agent,
    Baseline,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Baseline => "baseline",
        }
    }

    /// The prefix of the names of metrics.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "",
            Self::Baseline => "baseline/",
        }
    }
}

/// The prefixes under which metrics hold strategies by name, in backtests, studies and comparisons.
const STRATEGIES: [(&str, Role); 3] = [
    ("agent/", Role::Agent),
    ("baseline/", Role::Baseline),
    ("rule/", Role::Baseline),
];

/// The prefix of differences from a strategy.
const VERSUS: &str = "versus/";

/// The strategy of a row: the evaluated one itself, or one under a prefix and a name.
type Strategy<'a> = Option<(&'a str, &'a str)>;

/// The name of a strategy's figure among the metrics.
fn key(strategy: Strategy<'_>, figure: &str) -> String {
    match (strategy, figure.strip_prefix(VERSUS)) {
        (Some((_, name)), Some(less)) if !less.contains('/') => format!("{VERSUS}{name}/{less}"),
        (Some((prefix, name)), _) => format!("{prefix}{name}/{figure}"),
        (None, _) => figure.to_owned(),
    }
}

/// The evaluations under an agent's name.
pub(super) struct Evaluations<'a> {
    agent: &'a str,
    all: Vec<Values>,
}

impl<'a> Evaluations<'a> {
    /// Reads the last values of all inputs; a value that is null is NaN.
    pub(super) fn of(inputs: &'a BTreeMap<String, Vec<Input>>) -> Vec<Self> {
        let values = |input: &Input| -> Values {
            let summary = input.artifact.meta["summary"].as_object().into_iter().flatten();
            summary
                .map(|(name, value)| (name.clone(), value.as_f64().unwrap_or(f64::NAN)))
                .collect()
        };
        let read = |(agent, inputs): (&'a String, &Vec<Input>)| Self {
            agent,
            all: inputs.iter().map(values).collect(),
        };
        inputs.iter().map(read).collect()
    }

    /// The names of figures that a column can have, without the ends of intervals.
    pub(super) fn figures(&self) -> BTreeSet<String> {
        let keys = self.all.iter().flat_map(BTreeMap::keys);
        let is_end = |key: &str| key.ends_with("_low") || key.ends_with("_high");
        keys.filter(|key| !is_end(key))
            .map(|key| {
                let after = |prefix: &str| Some(key.strip_prefix(prefix)?.split_once('/')?.1);
                match (after(VERSUS), STRATEGIES.iter().find_map(|(prefix, _)| after(prefix))) {
                    (Some(less), _) => format!("{VERSUS}{less}"),
                    (_, Some(figure)) => figure.to_owned(),
                    _ => key.clone(),
                }
            })
            .collect()
    }

    /// The strategies beside the evaluated one.
    fn strategies(&self) -> impl Iterator<Item = (&'static str, Role, &str)> {
        STRATEGIES.into_iter().flat_map(|(prefix, role)| {
            let all = self.all.iter().flat_map(|values| names(values, prefix));
            let all: BTreeSet<&str> = all.collect();
            all.into_iter().map(move |name| (prefix, role, name))
        })
    }

    /// The cells of a strategy; `None` where no evaluation has any of the figures.
    fn cells(&self, strategy: Strategy<'_>, figures: &[String]) -> Option<Vec<Cell>> {
        let keys: Vec<String> = figures.iter().map(|figure| key(strategy, figure)).collect();
        let has = |values: &Values| keys.iter().any(|key| values.contains_key(key));
        let cell = |key: &String| Cell::of(&self.all, key, strategy.is_some());
        self.all.iter().any(has).then(|| keys.iter().map(cell).collect())
    }
}

/// A figure over evaluations: alone with its interval, or the mean of several with the standard deviation.
/// NaN stands for what there is not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub value: f64,
    pub sd: f64,
    pub low: f64,
    pub high: f64,
}

impl Cell {
    /// The cell of a metric. `is_same` allows for one figure that all evaluations share, with its interval. A
    /// figure that one of several evaluations lacks is not shown, since the mean of the others is of others.
    fn of(all: &[Values], key: &str, is_same: bool) -> Self {
        let each = |key: &str| -> Vec<f64> {
            let value = |values: &Values| values.get(key).copied().unwrap_or(f64::NAN);
            all.iter().map(value).collect()
        };
        let (values, low, high) = (each(key), each(&format!("{key}_low")), each(&format!("{key}_high")));
        let alike = |values: &[f64]| values.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits());
        let is_alone = values.len() == 1 || is_same && [&values, &low, &high].iter().all(|all| alike(all));
        let spread = Spread::of(&values).filter(|spread| spread.n == values.len());
        match spread {
            None => Self::new([f64::NAN; 4]),
            Some(spread) if is_alone => Self::new([spread.mean, f64::NAN, low[0], high[0]]),
            Some(spread) => Self::new([spread.mean, spread.sd.unwrap_or(f64::NAN), f64::NAN, f64::NAN]),
        }
    }

    fn new([value, sd, low, high]: [f64; 4]) -> Self {
        Self { value, sd, low, high }
    }

    /// The deviation and the ends of the interval, with the suffixes of their names.
    pub(super) fn beside(self) -> [(&'static str, f64); 3] {
        [("_sd", self.sd), ("_low", self.low), ("_high", self.high)]
    }

    pub(super) fn shown(self, unit: Unit) -> String {
        match self.sd.is_finite() {
            true => figures::with_deviation(self.value, self.sd, unit),
            false => figures::with_interval(self.value, self.low, self.high, unit),
        }
    }

    fn bits(self) -> [u64; 4] {
        [self.value, self.sd, self.low, self.high].map(f64::to_bits)
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub role: Role,
    pub name: String,
    /// The number of evaluations.
    pub n: usize,
    pub cells: Vec<Cell>,
}

impl Row {
    /// The number of an agent's evaluations; empty for a baseline, which may stand for those of several.
    pub(super) fn count(&self) -> String {
        match self.role {
            Role::Agent => self.n.to_string(),
            Role::Baseline => String::new(),
        }
    }
}

/// A strategy with the agents beside which it has the same figures.
struct Shared<'a> {
    agents: Vec<&'a str>,
    row: Row,
}

/// The rows by role and name. A strategy beside several agents is one row where its figures are the same,
/// else the row's name says beside which agents.
pub(super) fn rows(agents: &[Evaluations<'_>], figures: &[String], baselines: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut shared: BTreeMap<(Role, &str), Vec<Shared<'_>>> = BTreeMap::new();
    for of in agents {
        let row = |role, name: &str, cells| Row {
            role,
            name: name.to_owned(),
            n: of.all.len(),
            cells,
        };
        rows.extend(of.cells(None, figures).map(|cells| row(Role::Agent, of.agent, cells)));
        for (prefix, role, name) in of.strategies() {
            let Some(cells) = of.cells(Some((prefix, name)), figures) else {
                continue;
            };
            let all = shared.entry((role, name)).or_default();
            let bits = |cells: &[Cell]| -> Vec<[u64; 4]> { cells.iter().map(|cell| cell.bits()).collect() };
            match all.iter_mut().find(|one| bits(&one.row.cells) == bits(&cells)) {
                Some(same) => same.agents.push(of.agent),
                None => all.push(Shared {
                    agents: vec![of.agent],
                    row: row(role, name, cells),
                }),
            }
        }
    }
    for ((role, _), all) in shared {
        let is_one = all.len() == 1;
        let named = all.into_iter().map(|Shared { agents, row }| match is_one {
            true => row,
            false => Row {
                name: format!("{}, {}", row.name, agents.join(", ")),
                ..row
            },
        });
        rows.extend(named.filter(|_| baselines || role == Role::Agent));
    }
    rows.sort_by_key(|row| row.role);
    rows
}
