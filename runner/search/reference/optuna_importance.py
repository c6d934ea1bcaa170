"""Optuna's functional ANOVA of the function in `src/importance.rs`, over 300 points of the Halton sequence.

    python optuna_importance.py > importance.csv

Written with optuna 5.0.0 and scikit-learn: the parts of the variance, the mean over forests of ten seeds.
"""

import math

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution

optuna.logging.set_verbosity(optuna.logging.ERROR)


def halton(index, base):
    value, part = 0.0, 1.0
    while index > 0:
        part /= base
        value += part * (index % base)
        index //= base
    return value


CHOICES = ["relu", "tanh", "silu"]
distributions = {
    "a": FloatDistribution(0, 1),
    "b": FloatDistribution(0, 1),
    "c": FloatDistribution(-2, 2),
    "d": CategoricalDistribution(CHOICES),
    "e": FloatDistribution(0, 1),
}
trials = []
for i in range(1, 301):
    a, b, c, d, e = (halton(i, base) for base in (2, 3, 5, 7, 11))
    c, d = -2 + 4 * c, CHOICES[int(3 * d)]
    value = 3 * a + math.sin(6 * b) + c * c * a + {"relu": 0, "tanh": 1, "silu": 2.5}[d]
    params = {"a": a, "b": b, "c": c, "d": d, "e": e}
    trials.append(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
study = optuna.create_study()
study.add_trials(trials)
shares = {name: [] for name in distributions}
for seed in range(10):
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    for name, share in evaluator.evaluate(study).items():
        shares[name].append(share)
print("name,share,deviation")
for name, values in shares.items():
    print(f"{name},{np.mean(values):.4f},{np.std(values):.4f}")
