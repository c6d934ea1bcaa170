//! Nothing that is stamped later changes what an environment shows or does.

use super::*;
use crate::stocks::HedgeBars;
use crate::stocks::synthetic::eventful;
use datasets::{Date, DateRange};

/// The panel with another future from a date on: prices, volumes, features, rates and corporate actions; some
/// bars vanish for good, some for a while.
fn perturb(source: &PanelSource, from: Date) -> PanelSource {
    let mut other = source.clone();
    let mut random = Random::new(&[77]);
    let last = other.bars.len() - 1;
    for (i, of_symbol) in other.bars.iter_mut().enumerate() {
        let ends = random.uniform() < 0.3;
        // One symbol keeps its bars, and so the market its dates.
        of_symbol
            .bars
            .retain(|bar| bar.date < from || i == last || !(ends || random.uniform() < 0.2));
        for bar in of_symbol.bars.iter_mut().filter(|bar| bar.date >= from) {
            let factor = 0.5 + random.uniform();
            bar.open *= factor;
            bar.close *= factor * (0.9 + 0.2 * random.uniform());
            bar.volume *= factor;
        }
    }
    for feature in &mut other.features {
        let later = feature.values.iter_mut().filter(|(time, _)| time.date >= from);
        later.for_each(|value| value.1 += 1.0);
    }
    for values in other.symbol_features.iter_mut().flat_map(|feature| &mut feature.values) {
        let later = values.iter_mut().filter(|(date, _)| *date >= from);
        later.for_each(|value| {
            value.1 = if random.uniform() < 0.1 {
                f64::NAN
            } else {
                value.1 + 1.0
            }
        });
    }
    let later = other.rates.iter_mut().filter(|(date, _)| *date >= from);
    later.for_each(|rate| rate.1 += 0.02);
    other.actions.retain(|action| action.date < from);
    if let Some(HedgeBars::Symbol(fund)) = &mut other.hedge {
        for bar in fund.bars.iter_mut().filter(|bar| bar.date >= from) {
            bar.open *= 0.5 + random.uniform();
            bar.close *= 0.5 + random.uniform();
        }
    }
    other
}

#[test]
fn the_future_changes_nothing() {
    let source = eventful(160, 8, 3, 11);
    let dates: Vec<Date> = source.bars[0].bars.iter().map(|bar| bar.date).collect();
    for mut config in models() {
        config.train = Some(DateRange {
            from: dates[0],
            to: dates[90],
        });
        config.test = Some(
            DateRange {
                from: dates[91],
                to: dates[159],
            }
            .into(),
        );
        config.max_gaps = 0.5;
        // In a halt, on the last day of a symbol, before a split, and on it.
        for n in [100, 112, 113, 128, 129, 140] {
            check(&source, &config, dates[n], n);
        }
    }
}

fn check(source: &PanelSource, config: &StocksConfig, from: Date, n: usize) {
    let other = perturb(source, from);
    let (mut a, mut b) = (env(source, config, Split::Test, 3), env(&other, config, Split::Test, 3));
    // Fitted on training dates alone.
    assert_eq!(a.spec(), b.spec());
    for t in 0..n {
        let f64_bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(a.common().row(t)), bits(b.common().row(t)));
        assert_eq!(f64_bits(a.tables().marks(t)), f64_bits(b.tables().marks(t)));
        assert_eq!(a.tables().status(t), b.tables().status(t));
        assert_eq!(a.tables().events(t), b.tables().events(t));
        if a.common().hedges {
            assert_eq!(a.tables().hedge(t), b.tables().hedge(t));
        }
        if config.hedge.has_betas() {
            assert_eq!(f64_bits(a.tables().betas(t)), f64_bits(b.tables().betas(t)));
        }
        assert_eq!(a.common().risk_free[t].to_bits(), b.common().risk_free[t].to_bits());
        assert_eq!(
            a.common().underlying[t.saturating_sub(1)].to_bits(),
            b.common().underlying[t.saturating_sub(1)].to_bits()
        );
    }
    let (mut x, mut y) = (Step::new(a.spec(), 3), Step::new(b.spec(), 3));
    a.reset(x.buffers());
    b.reset(y.buffers());
    let mut random = Random::new(&[5]);
    for _ in a.snapshot(0)..n - 1 {
        assert_eq!((bits(&x.obs), &x.action_mask), (bits(&y.obs), &y.action_mask));
        let actions = random_actions(&mut random, &a.spec().action_space, 3);
        a.step(actions.as_actions(), x.buffers()).unwrap();
        b.step(actions.as_actions(), y.buffers()).unwrap();
        assert_eq!(bits(&x.reward), bits(&y.reward));
    }
    assert_eq!(bits(&x.obs), bits(&y.obs));
    assert_eq!(a.ledger(2), b.ledger(2));
    assert_eq!(a.snapshot(0), n - 1);
    // And the test is one: the next step is another.
    let actions = random_actions(&mut random, &a.spec().action_space, 3);
    a.step(actions.as_actions(), x.buffers()).unwrap();
    b.step(actions.as_actions(), y.buffers()).unwrap();
    assert_ne!(bits(&x.obs), bits(&y.obs));
}
