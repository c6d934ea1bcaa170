use super::*;
use crate::bench::functions::FUNCTIONS;
use crate::space::tests::{every_kind, settings, space};
use proptest::prelude::*;
use serde_json::json;

const NAMES: [SamplerName; 5] = [
    SamplerName::Random,
    SamplerName::Sobol,
    SamplerName::Tpe,
    SamplerName::CmaEs,
    SamplerName::Gp,
];

fn observed(trial: u32, settings: Settings, loss: f64) -> Observed {
    Observed {
        trial,
        settings,
        rung: 0,
        losses: vec![loss],
        violation: 0.0,
    }
}

/// Trials at random points, each with a loss by its coordinates.
fn observations(space: &Space, n: u32, seed: u64) -> Vec<Observed> {
    let mut random = Random::new(&[seed]);
    let trial = |trial| {
        let settings = space.settings(|_, _| random.uniform());
        let loss = space
            .point(&settings)
            .iter()
            .flatten()
            .map(|at| (at - 0.3) * (at - 0.3))
            .sum();
        observed(trial, settings, loss)
    };
    (0..n).map(trial).collect()
}

fn numbers() -> Space {
    space(json!({
        "a": {"uniform": [0, 1]},
        "b": {"log": [1e-5, 1e-2]},
        "c": {"integer": [1, 20]},
        "d": {"uniform": [0, 2], "step": 0.25},
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every proposal is in the space, with the active parameters alone; it depends neither on the order of
    /// the trials under way nor on the thread.
    #[test]
    fn proposals_are_in_the_space(n in 0_u32..40, seed in 0_u64..1000, wrong in 0.0..1.0_f64) {
        for name in NAMES {
            let sampler = sampler(name);
            let space = if name == SamplerName::CmaEs { numbers() } else { every_kind() };
            let mut seen = observations(&space, n, seed);
            for (i, observed) in seen.iter_mut().enumerate() {
                match (i as f64 * 0.618 + wrong).fract() {
                    part if part < 0.1 => observed.losses = vec![f64::INFINITY],
                    part if part < 0.2 => observed.losses = Vec::new(),
                    part if part < 0.3 => observed.violation = part,
                    part if part < 0.5 => observed.rung = 1,
                    _ => {}
                }
            }
            let mut running: Vec<Settings> =
                observations(&space, 3, seed + 1).into_iter().map(|observed| observed.settings).collect();
            let ask = |running: &[Settings]| {
                sampler.propose(&Ask { space: &space, seed, trial: n + 3, observed: &seen, running })
            };
            let proposal = ask(&running);
            prop_assert!(space.contains(&proposal), "{:?}: {:?}", name, proposal);
            running.reverse();
            prop_assert_eq!(&ask(&running), &proposal);
            let other = std::thread::scope(|scope| scope.spawn(|| ask(&running)).join().unwrap());
            prop_assert_eq!(&other, &proposal);
        }
    }
}

/// All settings of a finite space are tried before one is tried again, whatever their losses.
#[test]
fn finite_spaces_are_exhausted() {
    let choices = json!({
        "a": {"choice": ["x", "y"]},
        "b": {"integer": [1, 3]},
        "c": {"uniform": [0, 1], "step": 0.5, "when": {"a": "x"}},
    });
    let numbers = json!({"b": {"integer": [1, 4]}, "c": {"log_integer": [1, 3]}});
    for name in NAMES {
        let space = space(if name == SamplerName::CmaEs {
            numbers.clone()
        } else {
            choices.clone()
        });
        let all = space.all(100).unwrap();
        assert_eq!(all.len(), 12);
        let mut seen: Vec<Observed> = Vec::new();
        for trial in 0..13 {
            // Two of them are under way.
            let (done, running) = seen.split_at(seen.len().saturating_sub(2));
            let running: Vec<Settings> = running.iter().map(|observed| observed.settings.clone()).collect();
            let ask = Ask {
                space: &space,
                seed: 3,
                trial,
                observed: done,
                running: &running,
            };
            let proposal = sampler(name).propose(&ask);
            assert!(space.contains(&proposal));
            let is_new = seen.iter().all(|observed| observed.settings != proposal);
            assert_eq!(is_new, trial < 12, "{name:?} {trial}");
            let loss = if proposal["b"] == json!(1) { 0.0 } else { 1.0 };
            seen.push(observed(trial, proposal, loss));
        }
    }
}

/// Of each 2^k consecutive points, one is in each of 2^k intervals of a coordinate, and of the first 2^k in
/// each rectangle of that volume of the first two: the sequence is a (0, 2)-sequence in base 2.
#[test]
fn the_sobol_sequence_is_balanced() {
    for seed in 0..3 {
        for dimension in [0, 1, 7, 300] {
            for block in 0..4 {
                let mut counts = [0; 32];
                for i in 0..32 {
                    counts[(sobol(seed, block * 32 + i, dimension) * 32.0) as usize] += 1;
                }
                assert_eq!(counts, [1; 32]);
            }
        }
        for halvings in 0..=6 {
            let mut counts = [0; 64];
            for i in 0..64 {
                let column = (sobol(seed, i, 0) * f64::from(1 << halvings)) as usize;
                let row = (sobol(seed, i, 1) * f64::from(64 >> halvings)) as usize;
                counts[column * (64 >> halvings) + row] += 1;
            }
            assert_eq!(counts, [1; 64]);
        }
    }
    assert_ne!(sobol(0, 5, 0), sobol(1, 5, 0));
    assert_ne!(sobol(0, 5, 0), sobol(0, 5 + (1 << 16), 0));
}

/// Proposals never change: a search that is run again goes on from the same trials.
#[test]
fn proposals_are_pinned() {
    let (every, numbers) = (every_kind(), numbers());
    let line = |name| {
        let space = if name == SamplerName::CmaEs { &numbers } else { &every };
        let seen = observations(space, 30, 1);
        let proposal = sampler(name).propose(&Ask {
            space,
            seed: 1,
            trial: 30,
            observed: &seen,
            running: &[],
        });
        serde_json::to_string(&proposal).unwrap()
    };
    insta::assert_snapshot!(NAMES.map(line).join("\n"), @r#"
    {"clip":0.1,"gamma":0.92176,"layers":2,"policy":"mlp","rate":0.000740524,"steps":512,"units":93}
    {"clip":0.1,"gamma":0.864626,"layers":2,"policy":"mlp","rate":0.00599895,"steps":128,"units":19}
    {"clip":0.2,"gamma":0.831104,"layers":1,"policy":"mlp","rate":0.000231266,"steps":320,"units":16}
    {"a":0.17896,"b":0.00585813,"c":16,"d":0.5}
    {"clip":0.1,"gamma":0.8,"layers":1,"policy":"mlp","rate":0.0000241466,"steps":320,"units":8}
    "#);
}

/// The samplers that learn are far better on a bowl than random draws, and find it in a space with
/// conditions.
#[test]
fn samplers_learn() {
    let branin = &FUNCTIONS[0];
    let median = |name, trials: usize| {
        let regret = |seed| crate::bench::search(branin, name, seed, trials)[trials - 1].0;
        let mut regrets: Vec<f64> = (0..5).map(regret).collect();
        stages_numerics::statistics::median(&mut regrets).unwrap()
    };
    for (name, trials, factor) in [
        (SamplerName::Tpe, 60, 3.0),
        (SamplerName::CmaEs, 150, 100.0),
        (SamplerName::Gp, 40, 100.0),
    ] {
        let (regret, random) = (median(name, trials), median(SamplerName::Random, trials));
        assert!(regret * factor < random, "{name:?}: {regret}, random {random}");
    }
}

/// Trials of earlier searches are observations: no startup, and the first proposals are near the best of
/// them.
#[test]
fn earlier_trials_are_a_warm_start() {
    let space = space(json!({"x": {"uniform": [0, 1]}, "y": {"uniform": [0, 1]}}));
    let mut earlier = Vec::new();
    for i in 0..60 {
        let (x, y) = (sobol(9, i, 0), sobol(9, i, 1));
        let loss = (x - 0.9) * (x - 0.9) + (y - 0.1) * (y - 0.1);
        let at = space.settings(|k, _| [x, y][k]);
        earlier.push(observed(u32::MAX, at, loss));
    }
    for name in [SamplerName::Tpe, SamplerName::CmaEs, SamplerName::Gp] {
        let mut distances = Vec::new();
        for seed in 0..9 {
            let ask = Ask {
                space: &space,
                seed,
                trial: 0,
                observed: &earlier,
                running: &[],
            };
            let point = space.point(&sampler(name).propose(&ask));
            distances.push(libm::hypot(point[0].unwrap() - 0.9, point[1].unwrap() - 0.1));
        }
        let distance = stages_numerics::statistics::median(&mut distances).unwrap();
        assert!(distance < 0.2, "{name:?}: {distance}");
    }
}

/// A trial under way keeps the next proposals away from it.
#[test]
fn trials_under_way_repel() {
    let space = space(json!({"x": {"uniform": [0, 1]}}));
    let seen: Vec<Observed> = (0..12)
        .map(|i| {
            let x = f64::from(i) / 24.0;
            observed(i, settings(json!({"x": x})), libm::cos(9.0 * x))
        })
        .collect();
    let propose = |running: &[Settings]| {
        let ask = Ask {
            space: &space,
            seed: 0,
            trial: 12,
            observed: &seen,
            running,
        };
        sampler(SamplerName::Gp).propose(&ask)["x"].as_f64().unwrap()
    };
    let first = propose(&[]);
    let second = propose(&[settings(json!({"x": first}))]);
    assert!((second - first).abs() > 0.02, "{first} {second}");
}

#[test]
fn refusals() {
    let refused = |name, over, objectives| sampler(name).refuses(&space(over), objectives);
    let numbers = json!({"a": {"integer": [1, 4]}, "b": {"log": [1, 10]}});
    let choice = json!({"a": {"choice": [1, 4]}});
    for name in NAMES {
        assert_eq!(refused(name, numbers.clone(), 1), None);
        let several = matches!(name, SamplerName::CmaEs | SamplerName::Gp);
        assert_eq!(refused(name, numbers.clone(), 2).is_some(), several);
        assert_eq!(refused(name, choice.clone(), 1).is_some(), name == SamplerName::CmaEs);
    }
    assert!(
        refused(
            SamplerName::CmaEs,
            json!({"a": {"integer": [1, 2]}, "b": {"log": [1, 2], "when": {"a": 1}}}),
            1
        )
        .is_some()
    );
}

/// With two objectives, TPE comes to trials on the front.
#[test]
fn several_objectives() {
    let space = space(json!({"x": {"uniform": [0, 1]}, "y": {"uniform": [0, 1]}}));
    let mut seen: Vec<Observed> = Vec::new();
    for trial in 0..80 {
        let ask = Ask {
            space: &space,
            seed: 2,
            trial,
            observed: &seen,
            running: &[],
        };
        let settings = sampler(SamplerName::Tpe).propose(&ask);
        let point = space.point(&settings);
        let (x, y) = (point[0].unwrap(), point[1].unwrap());
        // The front is y = 0.5, and x between the two minima.
        let off = (y - 0.5) * (y - 0.5);
        let mut trial = observed(trial, settings, 0.0);
        trial.losses = vec![(x - 0.3) * (x - 0.3) + off, (x - 0.7) * (x - 0.7) + off];
        seen.push(trial);
    }
    let near = |seen: &[Observed]| {
        let is_near = |observed: &&Observed| {
            let point = space.point(&observed.settings);
            (point[1].unwrap() - 0.5).abs() < 0.15 && (0.2..=0.8).contains(&point[0].unwrap())
        };
        seen.iter().filter(is_near).count()
    };
    // Of random points, 18 of a hundred are as near.
    assert!(near(&seen[40..]) > 24, "{}", near(&seen[40..]));
}
