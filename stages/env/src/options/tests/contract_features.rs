//! Features by contract in the observation: against the definition, slot by slot, and without look-ahead.

use super::*;
use crate::options::synthetic::{intraday_market, market};
use crate::options::{ContractColumns, ContractFeatures, MarketSource};
use datasets::SnapshotTime;
use stages_core::dataset::Period;

/// Two features of a contract at a snapshot: one that some contracts have, and one that all have.
fn values(time: SnapshotTime, expiry: i32, strike: f64, call: bool) -> [f64; 2] {
    let moment = f64::from(time.date.0)
        + time
            .instant
            .map_or(0.0, |instant| (instant % 86_400_000_000) as f64 / 1e11);
    let of = moment * 0.37 + f64::from(expiry) * 0.11 + strike * if call { 1.3 } else { -0.7 };
    let first = if (of * 10.0).floor().rem_euclid(3.0) == 0.0 {
        f64::NAN
    } else {
        of.sin()
    };
    [first, of.cos()]
}

/// A feature of these rows.
fn table_of(columns: &ContractColumns, feature: usize, rows: &[usize]) -> ContractColumns {
    ContractColumns {
        times: rows.iter().map(|&row| columns.times[row]).collect(),
        expiries: rows.iter().map(|&row| columns.expiries[row]).collect(),
        roots: columns.roots.clone(),
        root: rows.iter().map(|&row| columns.root[row]).collect(),
        strikes: rows.iter().map(|&row| columns.strikes[row]).collect(),
        calls: rows.iter().map(|&row| columns.calls[row]).collect(),
        values: vec![rows.iter().map(|&row| columns.values[feature][row]).collect()],
    }
}

/// The source of a market with features by contract, those later than the first `n` snapshots moved by
/// `later`.
fn source(market: &SyntheticMarket, n: usize, later: f64) -> MarketSource<'_> {
    let end = market.days[n - 1].time();
    let months: Vec<&[crate::options::Day]> = market
        .days
        .chunk_by(|a, b| Period::Month.range(a.date).contains(b.date))
        .collect();
    let parts = months.len();
    let read = move |part: usize| {
        let mut columns = ContractColumns {
            roots: vec!["OTHER".to_owned(), "TOY".to_owned()],
            values: vec![Vec::new(); 2],
            ..ContractColumns::default()
        };
        for day in months[part] {
            for quote in &day.quotes {
                // The same terms in another class are another contract.
                for root in [0, 1] {
                    columns.times.push(day.time());
                    columns.expiries.push(quote.expiry);
                    columns.root.push(root);
                    columns.strikes.push(quote.strike);
                    columns.calls.push(quote.call);
                    let moved =
                        if day.time() > end { later } else { 0.0 } + if root == 0 { 1e3 } else { 0.0 };
                    let values = values(day.time(), quote.expiry, quote.strike, quote.call);
                    columns
                        .values
                        .iter_mut()
                        .zip(values)
                        .for_each(|(column, value)| column.push(value + moved));
                }
            }
        }
        // A table for each feature: the first without the rows that have no value, the second in another
        // order.
        let rows = 0..columns.times.len();
        let known: Vec<usize> = rows.clone().filter(|&row| !columns.values[0][row].is_nan()).collect();
        let backwards: Vec<usize> = rows.rev().collect();
        Ok(vec![table_of(&columns, 0, &known), table_of(&columns, 1, &backwards)])
    };
    MarketSource {
        contract_features: Some(ContractFeatures {
            names: vec!["some".to_owned(), "all".to_owned()],
            keys: vec![Vec::new(); parts],
            read: Box::new(read),
        }),
        ..market.source()
    }
}

fn with_features(market: &SyntheticMarket, config: &OptionsConfig, n: usize, later: f64) -> OptionsEnv {
    config.validate().unwrap();
    let files = build(&source(market, n, later), config, &InMemory).unwrap().files;
    let options = OpenOptions {
        split: Split::Test,
        ..OpenOptions::train(2, 5)
    };
    open(&files, &options)
}

fn check_slots(market: &SyntheticMarket, config: &OptionsConfig) {
    let n = market.days.len();
    let env = with_features(market, config, n, 0.0);
    let plain = super::env(market, config, Split::Test, 2);
    let tables = env.tables();
    let normalisation = env.spec().normalisation.clone().unwrap();
    let own = config.slate.features.len();
    let slots = 2 * config.slate.maturities.len() * config.slate.deltas.len();
    let market_width = plain.common().row(0).len() - slots * own;
    assert_eq!(env.common().row(0).len(), market_width + slots * (own + 2));
    assert_eq!(env.spec().observation.len(), plain.spec().observation.len() + 2 * slots);
    let (mut shown, mut missing) = (0, 0);
    for t in 0..n {
        let (row, without) = (env.common().row(t), plain.common().row(t));
        assert_eq!(row[..market_width], without[..market_width]);
        for slot in 0..slots {
            let at = market_width + slot * (own + 2);
            let of_plain = market_width + slot * own;
            assert_eq!(
                row[at..at + own],
                without[of_plain..of_plain + own],
                "the slate's own features"
            );
            let expected = match usize::try_from(tables.rows.slate[t * slots + slot]) {
                Ok(id) => {
                    let contract = &tables.contracts[id];
                    values(env.common().times[t], contract.expiry, contract.strike, contract.call)
                }
                Err(_) => [f64::NAN; 2],
            };
            for (j, value) in expected.into_iter().enumerate() {
                let column = at + own + j;
                let name = ["some", "all"][j];
                assert!(
                    env.spec().observation[column].ends_with(&format!(".{name}")),
                    "{column}"
                );
                let (offset, scale, clip) = (
                    normalisation.offset[column],
                    normalisation.scale[column],
                    normalisation.clip,
                );
                let expected = ((value as f32 - offset) / scale).clamp(-clip, clip);
                match value.is_nan() {
                    true => assert_eq!(row[column], 0.0),
                    false => assert_eq!(row[column].to_bits(), expected.to_bits()),
                }
                *(if value.is_nan() { &mut missing } else { &mut shown }) += 1;
            }
        }
    }
    assert!(shown > 1000 && missing > 100, "{shown} {missing}");
}

#[test]
fn slots_show_the_features_of_their_contracts() {
    check_slots(&market(120, 3), &OptionsConfig::default());
    let mut config = OptionsConfig::default();
    config.slate.features.clear();
    check_slots(&market(120, 3), &config);
    check_slots(
        &intraday_market(50, &[10.0, 15.75], 3).unwrap(),
        &OptionsConfig::default(),
    );
}

/// Later values change nothing that was observed, fitted or done before.
#[test]
fn the_future_of_contracts_changes_nothing() {
    let market = market(200, 11);
    let config = OptionsConfig::default();
    let n = 185;
    let (mut a, mut b) = (
        with_features(&market, &config, n, 0.0),
        with_features(&market, &config, n, 0.5),
    );
    assert_eq!(a.spec(), b.spec());
    assert!(a.ledger(0).snapshot < n - 20);
    for t in 0..market.days.len() {
        assert_eq!(a.common().row(t) == b.common().row(t), t < n, "{t}");
    }
    let (mut x, mut y) = (Step::new(a.spec(), 2), Step::new(b.spec(), 2));
    a.reset(x.buffers());
    b.reset(y.buffers());
    let mut random = Random::new(&[5]);
    while a.ledger(0).snapshot < n - 1 {
        let actions = random_actions(&mut random, &x, 2);
        step_discrete(&mut a, &actions, &mut x);
        step_discrete(&mut b, &actions, &mut y);
        assert_eq!(x.obs == y.obs, a.ledger(0).snapshot < n);
        assert_eq!((&x.reward, &x.action_mask), (&y.reward, &y.action_mask));
    }
}
