//! The quality of surfaces: the share of quotes between whose bid and ask the fitted price lies, and
//! arbitrage on a dense grid. Everything is read from the stage's output, which also gives volatilities for
//! contracts without a quote.

use super::lines::{Line, chain, price};
use super::{context, read_symbol, run, store_table, svi};
use cache::Store;
use datasets::Date;
use serde_json::json;
use stages_core::{PortType, table};
use std::collections::BTreeMap;
use std::fmt;

/// Maturities are reported up to these days.
const BUCKETS: [f64; 4] = [30.0, 90.0, 365.0, f64::INFINITY];

/// The volatilities that `greeks/surface` gives to lines, and seconds of its run.
fn fitted(lines: &[Line]) -> (Vec<f64>, f64) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (batch, order) = chain(lines);
    let digest = store_table(&store, PortType::OptionChain, &batch);
    let start = std::time::Instant::now();
    let out = run(&context(&store, &[("chain", digest)]), "greeks/surface", json!({}));
    let seconds = start.elapsed().as_secs_f64();
    let found = table::floats_or_nan(&read_symbol(&store, out["chain"], "TEST"), "iv_fitted").unwrap();
    let mut fitted = vec![f64::NAN; lines.len()];
    for (value, i) in found.into_iter().zip(order) {
        fitted[i] = value;
    }
    (fitted, seconds)
}

/// The distance of a fit from quotes: the share between bid and ask, by maturity, and the median error of
/// volatility.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Half of the quotes are nearer in volatility.
    pub median: f64,
    inside: [usize; BUCKETS.len()],
    quotes: [usize; BUCKETS.len()],
}

impl Share {
    fn of(lines: &[Line], fitted: &[f64], counts: impl Fn(usize) -> bool) -> Self {
        let mut share = Self::default();
        let mut errors = Vec::new();
        for (i, (line, fitted)) in lines.iter().zip(fitted).enumerate() {
            if line.is_quote() && counts(i) {
                let bucket = BUCKETS.iter().filter(|days| line.years * 365.0 >= **days).count();
                share.quotes[bucket] += 1;
                share.inside[bucket] += usize::from(line.has_inside(*fitted));
                errors.push((fitted - line.volatility).abs());
            }
        }
        errors.sort_by(f64::total_cmp);
        share.median = errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN);
        share
    }

    /// Of all maturities.
    pub(crate) fn total(&self) -> f64 {
        self.inside.iter().sum::<usize>() as f64 / self.quotes.iter().sum::<usize>() as f64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (inside, quotes) in self.inside.iter().zip(&self.quotes) {
            write!(
                f,
                "{:5.1} % of {quotes:6}, ",
                100.0 * *inside as f64 / (*quotes).max(1) as f64
            )?;
        }
        write!(f, "all {:5.1} %; median error {:.5}", 100.0 * self.total(), self.median)
    }
}

/// The quality of a chain's surfaces.
#[derive(Debug)]
pub(crate) struct Quality {
    /// Quotes whose fitted price lies between bid and ask.
    pub inside: Share,
    /// The same of every second quote, where the others are fitted.
    pub left_out: Share,
    /// The same of a raw SVI of five parameters for each expiry, which may have arbitrage.
    pub svi: Share,
    pub svi_left_out: Share,
    /// Smiles on the dense grid: of expiries, and halfway between them.
    pub smiles: usize,
    /// Points of the grid at which prices are not convex in the strike, or do not fall.
    pub butterflies: usize,
    /// Points of the grid at which total variance is below that of the time before.
    pub calendars: usize,
    /// Seconds for an expiry, of two threads.
    pub seconds: f64,
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "between bid and ask, by maturity of up to 30, 90, 365 days and more:"
        )?;
        writeln!(f, "  fitted          {}", self.inside)?;
        writeln!(f, "  left out        {}", self.left_out)?;
        writeln!(f, "  SVI             {}", self.svi)?;
        writeln!(f, "  SVI, left out   {}", self.svi_left_out)?;
        write!(
            f,
            "{} smiles: butterflies {}, calendars {}; {:.2} ms an expiry",
            self.smiles,
            self.butterflies,
            self.calendars,
            1e3 * self.seconds
        )
    }
}

/// The quotes of an expiry.
fn expiries(lines: &[Line]) -> BTreeMap<(Date, Date, &str), Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.is_quote()) {
        let key = (line.date, line.expiry, line.root.as_str());
        groups.entry(key).or_default().push(i);
    }
    for group in groups.values_mut() {
        group.sort_by(|&a, &b| lines[a].strike.total_cmp(&lines[b].strike));
    }
    groups
}

/// The volatilities of an SVI for each expiry, of the quotes that are `kept`.
fn by_svi(lines: &[Line], kept: &[bool]) -> Vec<f64> {
    let mut found = vec![f64::NAN; lines.len()];
    for group in expiries(lines).into_values() {
        let points: Vec<svi::Point> = group
            .iter()
            .filter(|&&i| kept[i])
            .map(|&i| {
                let line = &lines[i];
                let vega = (line.price(line.volatility + 1e-4) - line.price(line.volatility - 1e-4)) / 2e-4;
                svi::Point {
                    k: line.log_moneyness(),
                    variance: line.volatility * line.volatility * line.years,
                    // The error of a variance that half the spread makes.
                    error: 2.0 * line.volatility * line.years * line.half_spread().max(1e-6) / vega,
                }
            })
            .collect();
        let Some(smile) = svi::fit(&points) else { continue };
        for i in group {
            found[i] = (smile.variance(lines[i].log_moneyness()).max(0.0) / lines[i].years).sqrt();
        }
    }
    found
}

/// ln(K/F) of the dense grid.
fn grid() -> Vec<f64> {
    let far = |from: i32, to: i32| (from..to).map(|i| 0.02 * f64::from(i));
    let near = (-100..100).map(|i| 0.002 * f64::from(i));
    far(-75, -10).chain(near).chain(far(10, 51)).collect()
}

/// Fits a chain's surfaces and measures them.
pub(crate) fn measure(lines: &[Line]) -> Quality {
    let (found, seconds) = fitted(lines);
    let groups = expiries(lines);
    let inside = Share::of(lines, &found, |_| true);

    let mut kept = vec![true; lines.len()];
    for group in groups.values() {
        for i in group.iter().skip(1).step_by(2) {
            kept[*i] = false;
        }
    }
    let halved: Vec<Line> = lines
        .iter()
        .zip(&kept)
        .map(|(line, kept)| Line {
            volatility: if *kept { line.volatility } else { f64::NAN },
            ..line.clone()
        })
        .collect();
    let (of_half, _) = fitted(&halved);
    let left_out = Share::of(lines, &of_half, |i| !kept[i]);
    let svi = Share::of(lines, &by_svi(lines, &vec![true; lines.len()]), |_| true);
    let svi_left_out = Share::of(lines, &by_svi(lines, &kept), |i| !kept[i]);

    // Contracts without a quote on the grid, at the expiries and halfway between them.
    let grid = grid();
    let mut dense = lines.to_vec();
    let mut before: Option<&Line> = None;
    let mut smiles: Vec<(Date, f64, usize)> = Vec::new();
    let mut times: Vec<&Line> = groups.values().map(|group| &lines[group[0]]).collect();
    times.sort_by(|a, b| a.date.cmp(&b.date).then(a.years.total_cmp(&b.years)));
    for (n, line) in times.into_iter().enumerate() {
        let middle = before
            .filter(|before| before.date == line.date)
            .map(|before| 0.5 * (before.years + line.years));
        for years in middle.into_iter().chain([line.years]) {
            smiles.push((line.date, years, dense.len()));
            dense.extend(grid.iter().map(|k| Line {
                root: format!("GRID{n}{}", years == line.years),
                strike: line.forward * libm::exp(*k),
                call: *k >= 0.0,
                years,
                volatility: f64::NAN,
                ..line.clone()
            }));
        }
        before = Some(line);
    }
    let (found, _) = fitted(&dense);
    let (mut butterflies, mut calendars, mut measured) = (0, 0, 0);
    let mut earlier: Option<(Date, Vec<f64>)> = None;
    for (date, years, first) in smiles {
        let volatility = &found[first..first + grid.len()];
        if volatility[0].is_nan() {
            continue;
        }
        measured += 1;
        let call: Vec<f64> = grid
            .iter()
            .zip(volatility)
            .map(|(k, volatility)| price(libm::exp(*k), years, *volatility, true))
            .collect();
        let slopes: Vec<f64> = (1..grid.len())
            .map(|i| (call[i] - call[i - 1]) / (libm::exp(grid[i]) - libm::exp(grid[i - 1])))
            .collect();
        // Rounding of prices near 1, over the step of the grid.
        const ROUNDING: f64 = 1e-12;
        butterflies += slopes.windows(2).filter(|two| two[1] < two[0] - ROUNDING).count();
        butterflies += slopes
            .iter()
            .filter(|slope| **slope > ROUNDING || **slope < -1.0 - ROUNDING)
            .count();
        let variance: Vec<f64> = volatility
            .iter()
            .map(|volatility| volatility * volatility * years)
            .collect();
        if let Some((_, then)) = earlier.filter(|(day, _)| *day == date) {
            calendars += variance
                .iter()
                .zip(&then)
                .filter(|(now, then)| **now < **then * (1.0 - 1e-9))
                .count();
        }
        earlier = Some((date, variance));
    }
    Quality {
        inside,
        left_out,
        svi,
        svi_left_out,
        smiles: measured,
        butterflies,
        calendars,
        seconds: seconds / groups.len() as f64,
    }
}
