//! Functions whose least value is known, as `reference/functions.py` defines them too.

use crate::Settings;
use crate::space::Space;
use runner_pipeline::Domain;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// A function of settings.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The least value.
    pub minimum: f64,
    over: fn() -> Value,
    value: fn(&Settings) -> f64,
}

impl Function {
    /// The space of the function's settings.
    pub fn space(&self) -> Space {
        let over: BTreeMap<String, Domain> = serde_json::from_value((self.over)()).unwrap_or_default();
        Space::new(&over)
    }

    /// The value at these settings above the least value.
    pub fn regret(&self, settings: &Settings) -> f64 {
        (self.value)(settings) - self.minimum
    }

    /// True if all settings are numbers, without conditions.
    pub fn is_numeric(&self) -> bool {
        let is_number =
            |parameter: &crate::space::Parameter| !parameter.is_choice() && parameter.domain.when.is_empty();
        self.space().parameters.iter().all(is_number)
    }
}

/// The functions.
pub const FUNCTIONS: [Function; 5] = [
    Function {
        name: "branin",
        minimum: 0.397_887_357_729_738_16,
        over: || json!({"x": {"uniform": [-5, 10]}, "y": {"uniform": [0, 15]}}),
        value: branin,
    },
    Function {
        name: "hartmann6",
        minimum: -3.322_368_011_391_339,
        over: || cube(6, 0.0, 1.0),
        value: hartmann6,
    },
    Function {
        name: "rastrigin5",
        minimum: 0.0,
        over: || cube(5, -5.12, 5.12),
        value: rastrigin5,
    },
    Function {
        name: "mixed",
        minimum: 0.0,
        over: || {
            json!({
                "activation": {"choice": ["elu", "gelu", "relu", "tanh"]},
                "layers": {"integer": [1, 8]},
                "learning_rate": {"log": [1e-5, 1e-1]},
                "momentum": {"uniform": [0, 1], "step": 0.05},
                "units": {"log_integer": [8, 1024]},
            })
        },
        value: mixed,
    },
    Function {
        name: "conditional",
        minimum: 0.0,
        over: || {
            json!({
                "clip": {"uniform": [0.05, 0.5]},
                "optimiser": {"choice": ["adam", "rmsprop", "sgd"]},
                "adam_rate": {"log": [1e-6, 1e-1], "when": {"optimiser": "adam"}},
                "beta": {"uniform": [0.8, 0.999], "when": {"optimiser": "adam"}},
                "rmsprop_rate": {"log": [1e-6, 1e-1], "when": {"optimiser": "rmsprop"}},
                "sgd_rate": {"log": [1e-6, 1e1], "when": {"optimiser": "sgd"}},
                "momentum": {"uniform": [0, 0.99], "when": {"optimiser": "sgd"}},
                "nesterov": {"choice": [false, true], "when": {"optimiser": "sgd"}},
            })
        },
        value: conditional,
    },
];

fn cube(n: usize, low: f64, high: f64) -> Value {
    (0..n)
        .map(|i| (format!("x{i}"), json!({"uniform": [low, high]})))
        .collect()
}

fn number(settings: &Settings, name: &str) -> f64 {
    settings.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn branin(settings: &Settings) -> f64 {
    let (x, y) = (number(settings, "x"), number(settings, "y"));
    let (b, c, t) = (5.1 / (4.0 * PI * PI), 5.0 / PI, 1.0 / (8.0 * PI));
    let square = y - b * x * x + c * x - 6.0;
    square * square + 10.0 * (1.0 - t) * libm::cos(x) + 10.0
}

fn hartmann6(settings: &Settings) -> f64 {
    const ALPHA: [f64; 4] = [1.0, 1.2, 3.0, 3.2];
    const A: [[f64; 6]; 4] = [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ];
    const P: [[f64; 6]; 4] = [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ];
    let mut sum = 0.0;
    for (alpha, (a, p)) in ALPHA.iter().zip(A.iter().zip(&P)) {
        let mut square = 0.0;
        for i in 0..6 {
            let difference = number(settings, &format!("x{i}")) - p[i];
            square += a[i] * difference * difference;
        }
        sum += alpha * libm::exp(-square);
    }
    -sum
}

/// Rastrigin's function, shifted, so that its minimum is not at the centre.
fn rastrigin5(settings: &Settings) -> f64 {
    const SHIFT: [f64; 5] = [1.3, -2.2, 0.7, -0.4, 2.9];
    let term = |(i, shift): (usize, &f64)| {
        let x = number(settings, &format!("x{i}")) - shift;
        x * x - 10.0 * libm::cos(2.0 * PI * x) + 10.0
    };
    SHIFT.iter().enumerate().map(term).sum()
}

fn mixed(settings: &Settings) -> f64 {
    let (base, best) = match settings.get("activation").and_then(Value::as_str) {
        Some("elu") => (0.2, -2.0),
        Some("gelu") => (0.0, -3.2),
        Some("relu") => (0.05, -3.8),
        _ => (0.5, -2.5),
    };
    let rate = libm::log10(number(settings, "learning_rate")) - best;
    let size = libm::log2(number(settings, "units")) - 7.0;
    let inertia = number(settings, "momentum") - 0.85;
    let layers = number(settings, "layers") - 3.0;
    base + 0.5 * rate * rate
        + 0.6 * rate * inertia
        + 3.0 * inertia * inertia
        + 0.04 * layers * layers
        + 0.03 * size * size
}

fn conditional(settings: &Settings) -> f64 {
    let clip = number(settings, "clip") - 0.2;
    let loss = 4.0 * clip * clip;
    let rate = |name| libm::log10(number(settings, name));
    match settings.get("optimiser").and_then(Value::as_str) {
        Some("adam") => {
            let rate = rate("adam_rate") + 3.5;
            let decay = libm::log10(1.0 - number(settings, "beta")) + 1.5;
            loss + 0.1 + 0.3 * rate * rate + 0.5 * decay * decay + 0.3 * rate * decay
        }
        Some("rmsprop") => {
            let rate = rate("rmsprop_rate") + 3.0;
            loss + 0.25 + 0.3 * rate * rate
        }
        _ => {
            let momentum = number(settings, "momentum");
            let plain = if settings.get("nesterov") == Some(&Value::Bool(true)) {
                0.0
            } else {
                0.08
            };
            // An effective rate of 10^rate / (1 - momentum): a narrow valley.
            let valley = rate("sgd_rate") + 1.0 - libm::log10(1.0 - momentum) - 0.5;
            loss + plain + 0.6 * valley * valley + 2.0 * (momentum - 0.9) * (momentum - 0.9)
        }
    }
}
