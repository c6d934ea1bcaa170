//! Every strategy on functions of known minimum.

use super::*;

/// A strategy's state, and the cost of its mean after some generations on a function.
fn minimise(
    mut strategy: Box<dyn Strategy>,
    population: usize,
    generations: u64,
    cost: fn(&[f32]) -> f64,
) -> f64 {
    let n = 10;
    let noise = Noise::new(7);
    let (mut mean, mut m, mut v, mut steps) = (vec![1.5_f32; n], vec![0.0; n], vec![0.0; n], 0);
    let mut own = strategy.start(n);
    for number in 0..generations {
        let generation = Generation {
            number,
            std: 0.1,
            learning_rate: 0.05,
            noise,
        };
        strategy.prepare(&own);
        let signs: &[f32] = if strategy.antithetic() { &[1.0, -1.0] } else { &[1.0] };
        let mut costs = Vec::new();
        for sign in signs {
            for k in 0..population / signs.len() {
                let mut y = vec![0.0; n];
                strategy.displacement(&generation, &own, k, &mut y);
                let member: Vec<f32> = mean.iter().zip(&y).map(|(mean, y)| mean + sign * y).collect();
                costs.push(cost(&member));
            }
        }
        let mut distribution = Distribution {
            mean: &mut mean,
            adam: (&mut m, &mut v, &mut steps),
            own: &mut own,
        };
        strategy.tell(&generation, &costs, &mut distribution);
    }
    cost(&mean)
}

fn sphere(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
}

/// An ellipsoid whose axes are those of no coordinate.
fn rotated(x: &[f32]) -> f64 {
    let turned = |i: usize| f64::from(x[i]) + f64::from(x[(i + 1) % x.len()]) * 0.9;
    (0..x.len())
        .map(|i| libm::pow(100.0, i as f64 / 9.0) * turned(i) * turned(i))
        .sum()
}

fn rastrigin(x: &[f32]) -> f64 {
    let term = |x: f64| x * x - 10.0 * libm::cos(2.0 * std::f64::consts::PI * x) + 10.0;
    x.iter().map(|&x| term(f64::from(x))).sum()
}

fn all() -> Vec<(&'static str, Box<dyn Strategy>)> {
    vec![
        ("open_es", Box::new(OpenEs)),
        ("ars", Box::new(Ars)),
        (
            "pepg",
            Box::new(Pepg {
                std_init: 0.3,
                std_lr: 0.1,
                std_max_change: 0.2,
            }),
        ),
        ("sep_cma_es", Box::new(SepCmaEs::new(0.5, 32))),
        ("cma_es", Box::new(CmaEs::new(0.5, 32))),
    ]
}

#[test]
fn sphere_is_minimised() {
    for (name, strategy) in all() {
        let cost = minimise(strategy, 32, 200, sphere);
        assert!(cost < 0.05, "{name}: {cost}");
    }
    assert!(minimise(Box::new(CmaEs::new(0.5, 32)), 32, 200, sphere) < 1e-8);
    assert!(minimise(Box::new(SepCmaEs::new(0.5, 32)), 32, 200, sphere) < 1e-8);
}

#[test]
fn a_full_covariance_finds_the_axes() {
    assert!(minimise(Box::new(CmaEs::new(0.5, 32)), 32, 300, rotated) < 1e-8);
}

#[test]
fn rastrigin_with_a_large_population() {
    let cost = minimise(Box::new(CmaEs::new(2.0, 400)), 400, 150, rastrigin);
    assert!(cost < 1.5, "{cost}");
}

/// Shapes of the state do not depend on threads: blocks of sums are fixed.
#[test]
fn sums_are_those_of_the_definition_on_any_threads() {
    let (noise, n) = (Noise::new(1), 3000);
    let generation = Generation {
        number: 5,
        std: 1.0,
        learning_rate: 1.0,
        noise,
    };
    let weights = [(0, 0.5, 1.0), (3, -2.0, 0.25)];
    let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let one = pool(1).install(|| sums(&generation, &weights, n, true));
    assert_eq!(one, pool(3).install(|| sums(&generation, &weights, n, true)));
    let mut wanted = vec![[0.0_f64; 2]; n];
    for (k, a, b) in weights {
        let mut z = vec![0.0; n];
        generation.fill(k, 0, &mut z);
        for (sum, &z) in wanted.iter_mut().zip(&z) {
            sum[0] += f64::from(a * z);
            sum[1] += f64::from(b * z * z);
        }
    }
    for (i, wanted) in wanted.iter().enumerate() {
        assert!(
            (f64::from(one.0[i]) - wanted[0]).abs() < 1e-5 && (f64::from(one.1[i]) - wanted[1]).abs() < 1e-4
        );
    }
}
