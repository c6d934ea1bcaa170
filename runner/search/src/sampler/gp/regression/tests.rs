use super::*;

/// Three coordinates, the last a choice, of seven points.
fn points() -> Points {
    let rows = [
        [0.551, 0.708, 0.25],
        [0.511, 0.893, 0.75],
        [0.126, 0.207, 0.25],
        [0.441, 0.03, 0.25],
        [0.649, 0.278, 0.75],
        [0.591, 0.024, 0.75],
        [0.259, 0.415, 0.25],
    ];
    Points {
        rows: rows.map(|row| row.to_vec()).to_vec(),
        is_choice: vec![false, false, true],
    }
}

const VALUES: [f64; 7] = [-0.561, 1.819, 0.157, -1.203, -0.704, 1.019, -0.535];

fn kernel() -> Kernel {
    Kernel {
        inverse_squares: vec![4.0, 0.7, 1.3],
        scale: 1.7,
        noise: 0.02,
    }
}

/// By numpy 2.4, with `K = k(x, x) + noise * eye(7)`: `k(q, x) @ solve(K, y)`, `scale - sum(k(q, x) *
/// solve(K, k(x, q)).T, 1)`, and `slogdet(K)[1] / 2 + y @ solve(K, y) / 2` less the logarithm of the priors.
#[test]
fn the_posterior_and_the_likelihood_are_numpys() {
    let points = points();
    let process = Process::new(&points, &VALUES, kernel()).unwrap();
    for (at, mean, variance) in [
        ([0.3, 0.6, 0.25], -0.443_481_882_806_680_44, 0.048_475_895_633_846_69),
        ([0.9, 0.1, 0.75], -1.711_914_490_155_883_2, 0.511_656_253_624_040_1),
    ] {
        let posterior = process.posterior(&at);
        assert!((posterior.0 - mean).abs() < 1e-12 && (posterior.1 - variance).abs() < 1e-12);
        assert_eq!(process.mean(&at), posterior.0);
    }
    let differences: Vec<Vec<f64>> = (0..3).map(|k| pairs(&points, k)).collect();
    let (loss, _) = loss(&differences, &VALUES, &kernel().logarithms());
    // The kernel's noise is reached but for a hundredth of the least noise.
    assert!((loss - 18.951_132_663_720_877).abs() < 1e-5, "{loss}");
}

#[test]
fn the_gradient_is_that_of_finite_differences() {
    let points = points();
    let differences: Vec<Vec<f64>> = (0..3).map(|k| pairs(&points, k)).collect();
    let at = kernel().logarithms();
    let (_, gradient) = loss(&differences, &VALUES, &at);
    for k in 0..at.len() {
        let step = 1e-5;
        let moved = |by: f64| {
            let mut at = at.clone();
            at[k] += by;
            loss(&differences, &VALUES, &at).0
        };
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        assert!((slope - gradient[k]).abs() < 1e-6, "{k}: {slope} and {}", gradient[k]);
    }
}

/// A function of the first coordinate alone has a short length scale there, and long ones elsewhere; a fit is
/// no worse than its start.
#[test]
fn the_fit_finds_what_matters() {
    let mut random = stages_numerics::random::Random::new(&[5]);
    let rows: Vec<Vec<f64>> = (0..40).map(|_| (0..3).map(|_| random.uniform()).collect()).collect();
    let values: Vec<f64> = rows.iter().map(|row| libm::sin(12.0 * row[0])).collect();
    let points = Points {
        rows,
        is_choice: vec![false; 3],
    };
    let kernel = Kernel::fit(&points, &values);
    assert!(kernel.inverse_squares[0] > 20.0 * kernel.inverse_squares[1].max(kernel.inverse_squares[2]));
    assert!(kernel.noise < 1e-2);
    let process = Process::new(&points, &values, kernel).unwrap();
    assert!((process.mean(&[0.4, 0.5, 0.5]) - libm::sin(4.8)).abs() < 0.05);
}
