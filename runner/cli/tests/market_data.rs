//! The pipelines on market data, with the real stage kinds.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use cache::Store;
use runner_pipeline::{LoadOptions, load};
use runner_testkit::{Ended, Project};
use serde_json::Value;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[
        ("the_pipelines_on_market_data_are_valid", valid),
        ("an_account_walked_through_spx_is_the_backtest", walked_forward),
    ])
}

fn done(ended: Ended) -> Ended {
    assert_eq!(ended.code, 0, "{}", ended.text());
    ended
}

/// SPX 2019 night by night, each on the data up to it: the backtest that fills at the next snapshot, to the
/// bit.
fn walked_forward(data: &Path) {
    let project = Project::new(std::fs::read_to_string("../../pipelines/spx_options.yaml").unwrap());
    let data = format!("data={}", data.display());
    let fills = r#"env.with.fills={"price":"next_snapshot"}"#;
    let ran = done(project.exec(&["--set", &data, "--set", "timesteps=2048", "--set", fills]));
    let evaluated = ran
        .events()
        .into_iter()
        .rev()
        .find(|event| event["event"] == "stage_finished" && event["stage"] == "evaluate");
    let digest = evaluated.unwrap()["outputs"]["trajectory"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let store = Store::open(&project.home()).unwrap();
    let blob = store
        .artifact(digest)
        .unwrap()
        .entry("trajectory.parquet")
        .unwrap()
        .blob;
    let rows = stages_core::table::from_parquet(store.blob(blob).unwrap()).unwrap();
    let strategy = rows.column_by_name("strategy").unwrap().as_string::<i32>();
    let navs = rows.column_by_name("nav").unwrap().as_primitive::<Float64Type>();
    let of_policy = (0..rows.num_rows()).filter(|&row| strategy.value(row) == "policy");
    let backtest: Vec<f64> = of_policy.map(|row| navs.value(row)).collect();
    done(project.run(&[
        "paper",
        "open",
        "spx",
        "--policy",
        "latest/train",
        "--from",
        "2019-06-11",
    ]));
    let nights = done(project.run(&["paper", "run", "spx", "--until", "2019-06-28", "--json"]));
    let nights: Value = serde_json::from_str(&nights.stdout).unwrap();
    let nav = |night: &Value| night["book"]["nav"].as_f64().unwrap();
    let forward: Vec<f64> = nights["entries"].as_array().unwrap().iter().map(nav).collect();
    assert_eq!(forward, backtest);
    assert!(forward.iter().any(|nav| *nav != forward[0]), "nothing was traded");
}

fn valid(data: &Path) {
    for name in [
        "spx_options",
        "sse50_options",
        "sse50_walk_forward",
        "vxx_options",
        "dow_stocks",
    ] {
        let mut options = LoadOptions::new(runner::registry::kinds());
        options.set = vec![
            format!("data={}", data.display()),
            "timesteps=8192".to_owned(),
            "seed=8192".to_owned(),
        ];
        let file = format!("../../pipelines/{name}.yaml");
        load(Path::new(&file), &options).unwrap_or_else(|errors| panic!("{errors}"));
    }
    for folder in ["kinship", "family", "countries_triples/countries_S1"] {
        for profile in [None, Some("family"), Some("paths"), Some("countries")] {
            let mut options = LoadOptions::new(runner::registry::kinds());
            options.set = vec![format!("data={}/kb/{folder}", data.display())];
            options.profiles = profile.into_iter().map(str::to_owned).collect();
            load(Path::new("../../pipelines/symbolic.yaml"), &options)
                .unwrap_or_else(|errors| panic!("{errors}"));
        }
    }
}
