//! The parts of a line chart, and the look of its lines by their roles.

use crate::figures::Unit;

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The series' name in the legend.
    pub name: String,
    /// The points (x, y), in order of rising x; points that are not finite interrupt the line.
    pub points: Vec<(f64, f64)>,
    /// The band around the line as (x, low, high), in order of rising x, all finite; empty for none.
    pub band: Vec<(f64, f64, f64)>,
    /// The role, from which the colour and the dash follow.
    pub role: Role,
}

impl Series {
    /// Creates a line without a band and without a particular role.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
            band: Vec::new(),
            role: Role::Plain,
        }
    }

    /// Sets the role.
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The last finite value.
    pub(super) fn last(&self) -> Option<f64> {
        self.points.iter().rev().map(|point| point.1).find(|y| y.is_finite())
    }
}

/// The meaning of a line. It has the same colour on every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The policy under evaluation: strong, thick, over all others.
    Policy,
    /// Cash at the risk-free rate.
    Cash,
    /// The market itself: the underlying held, or all symbols with equal weights.
    Market,
    /// Another rule that the policy is compared with.
    Baseline,
    /// The policy with a part of what it sees taken away.
    Ablation,
    /// A line of another kind.
    Plain,
}

impl Role {
    /// The role of a strategy of an evaluation by its name, such as `policy`, `cash` or `baseline/random`.
    pub fn of(name: &str) -> Self {
        if name.starts_with("ablation/") {
            return Self::Ablation;
        }
        let name = name.strip_prefix("baseline/").unwrap_or(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        match name {
            "policy" | "account" => Self::Policy,
            "cash" | "risk_free" => Self::Cash,
            _ if starts(&["underlying", "equal_weight", "hold", "buy_and_hold", "market"]) => Self::Market,
            _ if starts(&["other_world", "shuffled", "no_memory", "greedy", "drawn"]) => Self::Ablation,
            _ => Self::Baseline,
        }
    }
}

/// The unit of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Steps: 12k, 1.5M.
    Steps,
    /// Days since 1970-01-01.
    Days,
}

impl Axis {
    /// The label of a position on the axis: for instants, the day on which they are; for days, the nearest
    /// day.
    pub(super) fn label(self, x: f64, has_hours: bool) -> String {
        match self {
            Self::Steps => super::number(x),
            Self::Days if has_hours => datasets::Date(x.floor() as i32).to_string(),
            Self::Days => datasets::Date(x.round() as i32).to_string(),
        }
    }
}

/// A line chart.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(super) title: String,
    pub(super) series: Vec<Series>,
    pub(super) axis: Axis,
    pub(super) unit: Unit,
    pub(super) height: f64,
    pub(super) group: String,
}

impl Chart {
    /// Creates a chart. Lines that are the same are one, with all their names.
    pub fn new(title: &str, series: Vec<Series>, axis: Axis) -> Self {
        Self {
            title: title.to_owned(),
            series: merged(series),
            axis,
            unit: Unit::Plain,
            height: 260.0,
            group: String::new(),
        }
    }

    /// Sets the unit of the vertical axis.
    pub fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Sets the height, in units of which the width has 640.
    pub fn height(self, height: f64) -> Self {
        Self { height, ..self }
    }

    /// Sets the group: charts of a group show the same range, the same position of the cursor and the same
    /// lines, by their names.
    pub fn group(self, group: &str) -> Self {
        Self {
            group: group.to_owned(),
            ..self
        }
    }
}

/// The largest difference of lines that count as the same, as a share of their largest value.
const SAME: f64 = 1e-9;

/// The lines with those that are the same joined: `cash = hold`.
fn merged(all: Vec<Series>) -> Vec<Series> {
    let near =
        |a: f64, b: f64| a == b || (a - b).abs() <= SAME * a.abs().max(b.abs()) || (a.is_nan() && b.is_nan());
    let same = |a: &Series, b: &Series| {
        let points = || a.points.iter().zip(&b.points);
        let bands = || a.band.iter().zip(&b.band);
        a.points.len() == b.points.len()
            && a.band.len() == b.band.len()
            && points().all(|(a, b)| near(a.0, b.0) && near(a.1, b.1))
            && bands().all(|(a, b)| near(a.0, b.0) && near(a.1, b.1) && near(a.2, b.2))
    };
    let mut kept: Vec<Series> = Vec::new();
    for one in all {
        match kept.iter_mut().find(|known| same(known, &one)) {
            Some(known) => {
                known.name = format!("{} = {}", known.name, one.name);
                known.role = known.role.min(one.role);
            }
            None => kept.push(one),
        }
    }
    kept
}

/// The look of a line.
#[derive(Debug, PartialEq)]
pub(super) struct Look {
    /// The name of the colour, a property of the style sheet without its dashes, such as `policy`.
    pub colour: String,
    /// The lengths of dashes and gaps; none for a solid line.
    pub dash: &'static [u8],
    /// The width, in pixels.
    pub width: f64,
}

impl Look {
    /// The dashes as an attribute of SVG; empty for a solid line.
    pub(super) fn dashes(&self) -> String {
        if self.dash.is_empty() {
            return String::new();
        }
        let lengths: Vec<String> = self.dash.iter().map(u8::to_string).collect();
        format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
    }
}

/// The number of colours of baselines and of plain lines, as in the style sheet.
const BASELINES: usize = 5;
const PLAIN: usize = 6;
const DASHES: [&[u8]; 6] = [&[], &[7, 3], &[2, 3], &[9, 3, 2, 3], &[4, 2], &[12, 4]];

/// The looks of lines of these roles.
pub(super) fn looks(series: &[Series]) -> Vec<Look> {
    let mut counts = [0_usize; 6];
    // The first plain colours are the policy's and the market's.
    if series.iter().any(|one| one.role == Role::Policy) {
        counts[Role::Plain as usize] = 2;
    }
    series
        .iter()
        .map(|one| {
            let count = &mut counts[one.role as usize];
            let at = *count;
            *count += 1;
            let dash = |at: usize| DASHES[at % DASHES.len()];
            // Baselines are dashed; those of one colour differ by their dashes.
            let dashed = |at: usize| DASHES[1 + (at + at / BASELINES) % (DASHES.len() - 1)];
            let (colour, dash, width) = match one.role {
                Role::Policy => ("policy".to_owned(), dash(at), 2.6),
                Role::Cash => ("cash".to_owned(), dash(at), 1.6),
                Role::Market => ("market".to_owned(), dash(at), 1.6),
                Role::Baseline => (format!("baseline-{}", at % BASELINES + 1), dashed(at), 1.3),
                Role::Ablation => ("ablation".to_owned(), dashed(at), 1.3),
                Role::Plain => (format!("c{}", at % PLAIN), dash(at / PLAIN), 1.7),
            };
            Look { colour, dash, width }
        })
        .collect()
}

/// The number of lines up to which all are shown at first.
const ALL: usize = 6;
/// The number of lines beside the policy that are shown at first of more.
const BEST: usize = 3;

/// True for each line that is shown at first. Of many, these are the policy and those that end highest;
/// without a policy, the first ones.
pub(super) fn is_shown(series: &[Series]) -> Vec<bool> {
    if series.len() <= ALL {
        return vec![true; series.len()];
    }
    let is_policy = |one: &Series| one.role == Role::Policy;
    if !series.iter().any(is_policy) {
        return (0..series.len()).map(|i| i < ALL).collect();
    }
    let mut others: Vec<usize> = (0..series.len()).filter(|i| !is_policy(&series[*i])).collect();
    let last = |i: usize| series[i].last().unwrap_or(f64::NEG_INFINITY);
    others.sort_by(|a, b| last(*b).total_cmp(&last(*a)));
    others.truncate(BEST);
    (0..series.len())
        .map(|i| is_policy(&series[i]) || others.contains(&i))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, last: f64) -> Series {
        Series::line(name, vec![(0.0, 1.0), (1.0, last)]).role(Role::of(name))
    }

    #[test]
    fn strategies_have_roles_by_their_names() {
        let roles = |names: &[&str]| names.iter().map(|name| Role::of(name)).collect::<Vec<_>>();
        assert_eq!(
            roles(&["policy", "cash", "baseline/cash"]),
            [Role::Policy, Role::Cash, Role::Cash]
        );
        assert_eq!(roles(&["underlying", "equal_weight_held", "hold"]), [Role::Market; 3]);
        assert_eq!(roles(&["random", "short_straddle", "always_buy"]), [Role::Baseline; 3]);
        assert_eq!(
            roles(&["ablation/x", "shuffled_slate", "no_memory"]),
            [Role::Ablation; 3]
        );
    }

    #[test]
    fn equal_lines_are_one_with_the_first_role() {
        let chart = Chart::new(
            "t",
            vec![line("hold", 2.0), line("cash", 2.0), line("random", 3.0)],
            Axis::Steps,
        );
        let names: Vec<_> = chart.series.iter().map(|one| (one.name.as_str(), one.role)).collect();
        assert_eq!(names, [("hold = cash", Role::Cash), ("random", Role::Baseline)]);
    }

    #[test]
    fn lines_of_a_chart_look_different() {
        let names = [
            "policy",
            "cash",
            "underlying",
            "equal_weight",
            "a",
            "b",
            "c",
            "d",
            "e",
            "no_memory",
        ];
        let series: Vec<_> = names.iter().map(|name| line(name, 1.0)).collect();
        let looks = looks(&series);
        assert_eq!((looks[0].colour.as_str(), looks[0].dash), ("policy", [].as_slice()));
        for (i, look) in looks.iter().enumerate() {
            let twins = looks
                .iter()
                .filter(|other| (&other.colour, other.dash) == (&look.colour, look.dash));
            assert_eq!(twins.count(), 1, "{}", names[i]);
            assert!(super::super::STYLE.contains(&format!("--{}:", look.colour)), "{look:?}");
        }
        assert_eq!(looks[1].dashes(), "");
        assert_eq!(looks[4].dashes(), " stroke-dasharray=\"7 3\"");
    }

    #[test]
    fn of_many_lines_the_policy_and_the_best_are_shown() {
        let mut series: Vec<_> = (0..7).map(|i| line(&format!("r{i}"), f64::from(i))).collect();
        assert_eq!(is_shown(&series), [true, true, true, true, true, true, false]);
        series.insert(0, line("policy", -9.0));
        assert_eq!(is_shown(&series), [true, false, false, false, false, true, true, true]);
        assert_eq!(is_shown(&series[..3]), [true; 3]);
    }
}
