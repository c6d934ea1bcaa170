//! Accounting identities of a backtest: its metrics follow from its trajectory, and the trajectory from the
//! market.

use super::*;
use crate::performance::{Performance, Periods, Returns, mean_and_deviation};
use crate::trials::probabilistic_sharpe;
use arrow_array::StringArray;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use stages_env::options::BASELINES;
use stages_env::options::synthetic::intraday_market;

/// The rows of one run.
struct Run<'a> {
    table: &'a RecordBatch,
    rows: Vec<usize>,
}

impl Run<'_> {
    fn column(&self, name: &str) -> Vec<f64> {
        let values = self.table.column_by_name(name).unwrap();
        let values = values.as_primitive::<Float64Type>();
        self.rows.iter().map(|&row| values.value(row)).collect()
    }

    /// Returns beside those of cash, as the account of the baseline `cash` has them, and of the underlying.
    fn returns(&self, cash: &Run) -> Returns {
        let of = |column: Vec<f64>| {
            column
                .windows(2)
                .map(|pair| pair[1] / pair[0] - 1.0)
                .collect::<Vec<_>>()
        };
        Returns::new(
            of(self.column("nav")),
            &of(cash.column("nav")),
            &of(self.column("underlying")),
        )
    }
}

/// The runs of a strategy.
fn runs<'a>(table: &'a RecordBatch, strategy: &str) -> Vec<Run<'a>> {
    let strategies = table.column_by_name("strategy").unwrap();
    let strategies: &StringArray = strategies.as_string();
    let paths = table.column_by_name("path").unwrap().as_primitive::<Float64Type>();
    let mut out: Vec<Run> = Vec::new();
    for row in (0..table.num_rows()).filter(|&row| strategies.value(row) == strategy) {
        let path = paths.value(row) as usize;
        if path == out.len() {
            let rows = Vec::new();
            out.push(Run { table, rows });
        }
        out[path].rows.push(row);
    }
    out
}

fn last(values: &[f64]) -> f64 {
    values[values.len() - 1]
}

fn close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{what}: {a} against {b}");
}

#[test]
fn metrics_follow_from_the_trajectory() {
    let workplace = options_workplace(320, &OptionsConfig::default());
    let config = BacktestConfig {
        random_paths: 5,
        bootstrap_draws: 50,
        ..BacktestConfig::default()
    };
    let (summary, table) = workplace.results(&config);
    let of = |name: &str| summary[name].as_f64().unwrap();
    let steps = of("steps") as usize;
    let mut total_return = Vec::new();
    let cash = &runs(&table, "cash")[0];
    for strategy in ["policy", "cash", "underlying", "short_straddle", "random"] {
        let prefix = if strategy == "policy" {
            String::new()
        } else {
            format!("baseline/{strategy}/")
        };
        let runs = runs(&table, strategy);
        assert_eq!(runs.len(), if strategy == "random" { 5 } else { 1 });
        let mean = |value: &dyn Fn(&Run) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
        for run in &runs {
            let nav = run.column("nav");
            assert_eq!((nav.len(), nav[0]), (steps + 1, 1e6), "{strategy}");
            // Nothing is left of what is not there: NAV is at least the value at the quotes, and costs only
            // grow.
            let liquidation = run.column("liquidation_value");
            assert!(nav.iter().zip(&liquidation).all(|(nav, value)| value <= &(nav + 1e-6)));
            assert!(run.column("costs").is_sorted() && run.column("traded_value").is_sorted());
        }
        let returns: Vec<Returns> = runs.iter().map(|run| run.returns(cash)).collect();
        for (name, mut value) in Performance::of(&returns, returns.len(), Periods::DAILY).named() {
            let told = summary[format!("{prefix}{name}")].as_f64();
            if told.is_none() {
                assert!(value.is_nan(), "{strategy} {name}: {value}");
                continue;
            }
            if name == "total_return" {
                total_return.push(value);
                value = mean(&|run| last(&run.column("nav")) / 1e6 - 1.0);
            }
            close(told.unwrap(), value, &format!("{strategy} {name}"));
        }
        close(
            of(&format!("{prefix}costs")),
            mean(&|run| last(&run.column("costs")) / 1e6),
            "costs",
        );
        let turnover = mean(&|run| {
            let nav = mean_and_deviation(&run.column("nav")).0;
            last(&run.column("traded_value")) / nav * 252.0 / steps as f64
        });
        close(of(&format!("{prefix}turnover")), turnover, "turnover");
    }
    for (strategy, value) in ["cash", "underlying", "short_straddle", "random"]
        .iter()
        .zip(&total_return[1..])
    {
        close(
            of(&format!("excess_over/{strategy}")),
            total_return[0] - value,
            strategy,
        );
    }
}

#[test]
fn several_snapshots_a_day_have_instants_and_are_annualised_by_days() {
    let market = intraday_market(320, &[10.0, 12.5, 15.75], 5).unwrap();
    let mut workplace = Workplace::new();
    workplace.connect_market(&market, &OptionsConfig::default());
    let spec = workplace.env().spec().clone();
    workplace.connect_policy(&spec);
    let (summary, table) = workplace.results(&BacktestConfig::default());
    assert_eq!(table.schema().field(3).name(), "snapshot");
    let straddle = &runs(&table, "short_straddle")[0];
    let times = stages_core::table::snapshot_times(&table).unwrap();
    let times: Vec<_> = straddle.rows.iter().map(|&row| times[row]).collect();
    assert!(
        times
            .windows(2)
            .all(|pair| pair[0] < pair[1] && pair[0].instant.is_some())
    );
    let days = times.chunk_by(|a, b| a.date == b.date).count();
    assert_eq!(times.len(), 3 * days);
    let cash = &runs(&table, "cash")[0];
    let expected = Performance::of(&[straddle.returns(cash)], 1, Periods { per_year: 756.0 });
    for (name, value) in expected.named() {
        let told = summary[format!("baseline/short_straddle/{name}")].as_f64().unwrap();
        close(told, value, name);
    }
}

/// Several paths over few days are refused annual figures as one path is.
#[test]
fn paths_over_the_same_days_are_no_data() {
    let config = OptionsConfig {
        test_fraction: 0.15,
        ..OptionsConfig::default()
    };
    let (summary, table) = options_workplace(320, &config).results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64();
    let steps = of("steps").unwrap();
    assert!((20.0..60.0).contains(&steps), "{steps}");
    for prefix in ["", "drawn/", "baseline/random/"] {
        for annual in [
            "annual_return",
            "excess_return",
            "volatility",
            "sharpe",
            "utility",
            "alpha",
            "turnover",
        ] {
            assert_eq!(of(&format!("{prefix}{annual}")), None, "{prefix}{annual}");
        }
        assert!(of(&format!("{prefix}total_return")).is_some());
    }
    assert_eq!(of("versus/random/utility"), None);
    // The probability is that of the mean account of the 20 runs, over the steps that there are.
    let cash = &runs(&table, "cash")[0];
    let returns: Vec<Returns> = runs(&table, "random").iter().map(|run| run.returns(cash)).collect();
    assert_eq!(returns.len(), 20);
    let excess: Vec<f64> = (0..steps as usize)
        .map(|t| returns.iter().map(|run| run.excess[t]).sum::<f64>() / 20.0)
        .collect();
    let told = of("baseline/random/probabilistic_sharpe").unwrap();
    close(
        told,
        probabilistic_sharpe(&excess, steps, 0.0),
        "probabilistic Sharpe ratio",
    );
}

/// Cash earns interest and nothing else; the policy sees the same underlying on the same dates.
#[test]
fn cash_is_interest_and_dates_are_shared() {
    let workplace = options_workplace(320, &OptionsConfig::default());
    let (summary, table) = workplace.results(&BacktestConfig::default());
    let cash = &runs(&table, "cash")[0];
    let (nav, interest) = (cash.column("nav"), cash.column("interest"));
    for (nav, interest) in nav.iter().zip(&interest) {
        close(*nav, 1e6 + interest, "interest");
    }
    assert!(last(&interest) > 0.0);
    for name in ["costs", "turnover", "max_drawdown"] {
        assert_eq!(summary[format!("baseline/cash/{name}")].as_f64(), Some(0.0));
    }
    let policy = &runs(&table, "policy")[0];
    for strategy in BASELINES {
        for run in runs(&table, strategy.name()) {
            assert_eq!(run.column("underlying"), policy.column("underlying"));
        }
    }
    // The interval of the Sharpe ratio holds the ratio itself.
    let of = |name: &str| summary[format!("baseline/short_straddle/{name}")].as_f64().unwrap();
    assert!(
        of("sharpe_low") < of("sharpe") && of("sharpe") < of("sharpe_high"),
        "{summary}"
    );
}
