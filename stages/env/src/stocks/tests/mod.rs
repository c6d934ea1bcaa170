//! Tests of the environment as a whole, on synthetic panels.

mod accounting;
mod finrl;
mod slow;

use super::{PanelSource, StocksConfig, StocksEnv, build};
use crate::open_options::{OpenOptions, Split};
use bytes::Bytes;

/// The files of an environment.
fn files(sources: &[PanelSource], config: &StocksConfig) -> Vec<(String, Vec<u8>)> {
    build(sources, config).unwrap().files
}

fn open(files: &[(String, Vec<u8>)], options: &OpenOptions) -> StocksEnv {
    let file = |wanted: &str| {
        let (_, bytes) = files.iter().find(|(name, _)| name == wanted).unwrap();
        Ok(Bytes::from(bytes.clone()))
    };
    StocksEnv::from_files(file, options).unwrap()
}

fn env(source: &PanelSource, config: &StocksConfig, split: Split, num_envs: usize) -> StocksEnv {
    let options = OpenOptions {
        split,
        ..OpenOptions::train(num_envs, 5)
    };
    open(&files(std::slice::from_ref(source), config), &options)
}
