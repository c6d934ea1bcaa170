"""Known functions, as `src/bench/functions.rs` defines them: each suggests its settings from an Optuna trial and
returns the value. The minimum of each is in `MINIMA`."""

import math


def branin(trial):
    x = trial.suggest_float("x", -5.0, 10.0)
    y = trial.suggest_float("y", 0.0, 15.0)
    b, c, t = 5.1 / (4.0 * math.pi**2), 5.0 / math.pi, 1.0 / (8.0 * math.pi)
    return (y - b * x * x + c * x - 6.0) ** 2 + 10.0 * (1.0 - t) * math.cos(x) + 10.0


ALPHA = (1.0, 1.2, 3.0, 3.2)
A = (
    (10.0, 3.0, 17.0, 3.5, 1.7, 8.0),
    (0.05, 10.0, 17.0, 0.1, 8.0, 14.0),
    (3.0, 3.5, 1.7, 10.0, 17.0, 8.0),
    (17.0, 8.0, 0.05, 10.0, 0.1, 14.0),
)
P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann6(trial):
    x = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(6)]
    return -sum(
        alpha * math.exp(-sum(a * (v - p) ** 2 for a, v, p in zip(row, x, centre)))
        for alpha, row, centre in zip(ALPHA, A, P)
    )


# The minimum is not at the centre, where CMA-ES begins.
SHIFT = (1.3, -2.2, 0.7, -0.4, 2.9)


def rastrigin5(trial):
    x = [trial.suggest_float(f"x{i}", -5.12, 5.12) - shift for i, shift in enumerate(SHIFT)]
    return sum(v * v - 10.0 * math.cos(2.0 * math.pi * v) + 10.0 for v in x)


def mixed(trial):
    activation = trial.suggest_categorical("activation", ["elu", "gelu", "relu", "tanh"])
    layers = trial.suggest_int("layers", 1, 8)
    learning_rate = trial.suggest_float("learning_rate", 1e-5, 1e-1, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 1.0, step=0.05)
    units = trial.suggest_int("units", 8, 1024, log=True)
    base, best = {"elu": (0.2, -2.0), "gelu": (0.0, -3.2), "relu": (0.05, -3.8), "tanh": (0.5, -2.5)}[activation]
    rate, size = math.log10(learning_rate) - best, math.log2(units) - 7.0
    inertia = momentum - 0.85
    return (
        base
        + 0.5 * rate * rate
        + 0.6 * rate * inertia
        + 3.0 * inertia * inertia
        + 0.04 * (layers - 3.0) ** 2
        + 0.03 * size * size
    )


def conditional(trial):
    clip = trial.suggest_float("clip", 0.05, 0.5)
    optimiser = trial.suggest_categorical("optimiser", ["adam", "rmsprop", "sgd"])
    loss = 4.0 * (clip - 0.2) ** 2
    if optimiser == "adam":
        rate = math.log10(trial.suggest_float("adam_rate", 1e-6, 1e-1, log=True)) + 3.5
        decay = math.log10(1.0 - trial.suggest_float("beta", 0.8, 0.999)) + 1.5
        return loss + 0.1 + 0.3 * rate * rate + 0.5 * decay * decay + 0.3 * rate * decay
    if optimiser == "rmsprop":
        rate = math.log10(trial.suggest_float("rmsprop_rate", 1e-6, 1e-1, log=True)) + 3.0
        return loss + 0.25 + 0.3 * rate * rate
    rate = math.log10(trial.suggest_float("sgd_rate", 1e-6, 1e1, log=True)) + 1.0
    momentum = trial.suggest_float("momentum", 0.0, 0.99)
    nesterov = trial.suggest_categorical("nesterov", [False, True])
    # An effective rate of 10^rate / (1 - momentum): a narrow valley.
    valley = rate - math.log10(1.0 - momentum) - 0.5
    return loss + (0.0 if nesterov else 0.08) + 0.6 * valley * valley + 2.0 * (momentum - 0.9) ** 2


FUNCTIONS = {f.__name__: f for f in (branin, hartmann6, rastrigin5, mixed, conditional)}
# Of `mixed`: units 128 and a momentum of 0.85 are in the space. The others are known, or 0 by construction.
MINIMA = {
    "branin": 0.39788735772973816,
    "hartmann6": -3.322368011391339,
    "rastrigin5": 0.0,
    "mixed": 0.0,
    "conditional": 0.0,
}
