//! The pipelines on market data, with the real stage kinds.

#[path = "../../../tests/requirements.rs"]
mod requirements;

use runner_pipeline::{LoadOptions, load};
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[("the_pipelines_on_market_data_are_valid", valid)])
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
