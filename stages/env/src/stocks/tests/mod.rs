//! Tests of the environment as a whole, on synthetic panels.

mod accounting;
mod finrl;
mod golden;
mod hedging;
mod lookahead;
mod observations;
mod parts;
mod refusals;
mod restarts;
mod rules;
mod slow;
mod slow_hedge;
mod worlds;

use super::{
    FillAt, HedgeBars, HedgeRule, Neutral, PanelSource, StockActionKind, StocksConfig, StocksEnv, build,
};
use crate::actions::{ActionBuffer, ActionSpace};
use crate::batch::{BatchEnv, Step};
use crate::episode::EpisodeLength;
use crate::hedge::FutureBar;
use crate::open_options::{OpenOptions, Split};
use crate::stocks::synthetic::FUND;
use bytes::Bytes;
use datasets::Date;
use stages_numerics::random::Random;

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

/// Random actions of a space; of choices one time in ten one that does not exist.
fn random_actions(random: &mut Random, space: &ActionSpace, num_envs: usize) -> ActionBuffer {
    let mut actions = ActionBuffer::new(space, num_envs);
    match &mut actions {
        ActionBuffer::Continuous(values) => {
            values.iter_mut().for_each(|value| *value = random.normal() as f32)
        }
        ActionBuffer::Discrete(values) | ActionBuffer::MultiDiscrete(values) => {
            values.iter_mut().for_each(|value| *value = random.below(4) as u32);
        }
    }
    actions
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Configurations that between them have every rule, over the whole of the dates and in short episodes.
fn models() -> Vec<StocksConfig> {
    let base = StocksConfig {
        episode_length: EpisodeLength { least: 5, most: 40 },
        purge: 0,
        ..StocksConfig::default()
    };
    let mut margin = base.clone();
    margin.actions.short = true;
    margin.actions.gross = 1.8;
    margin.actions.net = 0.5;
    margin.actions.no_trade = 0.01;
    margin.fills.lot = 0;
    margin.margin.maintenance = 0.5;
    let mut volume = base.clone();
    volume.fills.at = FillAt::NextOpen;
    volume.fills.impact = 0.8;
    volume.fills.participation = Some(0.05);
    volume.fills.per_share = 0.005;
    volume.capital = 1e8;
    volume.delisting.after = 2;
    let mut shares = margin.clone();
    shares.actions.kind = StockActionKind::Shares;
    shares.actions.shares = 2000;
    shares.fills.at = FillAt::NextOpen;
    let mut choices = base.clone();
    choices.actions.kind = StockActionKind::Choices;
    choices.actions.shares = 500;
    choices.reward.expression =
        "excess - 0.1 * turnover + 0 * market_return - concentration / 100".to_owned();
    let mut scores = volume.clone();
    scores.actions.kind = StockActionKind::Scores;
    scores.actions.largest = 0.3;
    scores.actions.gap = 0.5;
    let mut hedged = margin.clone();
    hedged.hedge.instrument = FUND.to_owned();
    hedged.hedge.window = 40;
    let mut ratio = volume.clone();
    ratio.hedge.instrument = FUND.to_owned();
    ratio.hedge.rule = HedgeRule::Action;
    ratio.hedge.lot = 10.0;
    let mut band = choices.clone();
    band.hedge.instrument = FUND.to_owned();
    band.hedge.neutral = Neutral::Dollar;
    band.hedge.rule = HedgeRule::Action;
    band.reward.expression = "excess - abs(exposure) / 100 - abs(hedge) / 1000".to_owned();
    vec![base, margin, volume, shares, choices, hedged, ratio, band, scores]
}

/// The panel with a future on its fund: two contracts with a basis of their own, of which the second has the
/// larger volume from the middle on; both lack a few days.
fn with_future(mut source: PanelSource) -> PanelSource {
    let Some(HedgeBars::Symbol(fund)) = &source.hedge else {
        panic!("a fund")
    };
    let dates: Vec<Date> = source.bars[0].bars.iter().map(|bar| bar.date).collect();
    let mut bars = Vec::new();
    for (t, date) in dates.iter().enumerate() {
        if (60..63).contains(&t) {
            continue;
        }
        let known = fund.bars.iter().rev().find(|bar| bar.date <= *date).unwrap();
        for (contract, basis, volume) in [
            ("H", 1.01, 100.0),
            ("M", 1.03, if t < dates.len() / 2 { 10.0 } else { 500.0 }),
        ] {
            bars.push(FutureBar {
                date: *date,
                contract: contract.to_owned(),
                open: known.open * basis,
                close: known.close * basis + (t % 7) as f64 * 0.05,
                volume,
            });
        }
    }
    source.hedge = Some(HedgeBars::Future(bars));
    source
}
