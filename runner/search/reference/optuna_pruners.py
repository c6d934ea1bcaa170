"""Optuna's ASHA on the simulated learning curves of `tests/study/curves.rs`, at a budget of 20 full trainings.

    python optuna_pruners.py > asha.csv

Written with optuna 5.0.0. Four trials are under way at a time, as in the searches beside it; each advances by
one rung in turn. The trial that is chosen is the best of those that came to the end.
"""

import math

import optuna

RUNGS = [1, 3, 9, 27, 81]
BUDGET = 20 * 81
WORKERS = 4

optuna.logging.set_verbosity(optuna.logging.ERROR)


def loss(a, b, c, d, resource):
    asymptote = (a - 0.3) ** 2 + (b - 0.7) ** 2
    return asymptote + 0.5 * (0.2 + d) * resource ** (-0.3 - 0.7 * c)


def measured(a, b, c, d, resource):
    phase = 12.9898 * a + 78.233 * b + 37.719 * c + 93.989 * d + 4.1414 * resource
    noise = math.sin(phase) * 43758.5453
    noise = 2 * (noise - math.floor(noise)) - 1
    return loss(a, b, c, d, resource) + 0.1 * noise / math.sqrt(resource)


def search(seed, sampler):
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    spent, under_way = 0, []
    while spent < BUDGET:
        while len(under_way) < WORKERS:
            trial = study.ask()
            point = [trial.suggest_float(name, 0, 1) for name in "abcd"]
            under_way.append((trial, point, 0))
        trial, point, rung = under_way.pop(0)
        spent += RUNGS[rung] - (RUNGS[rung - 1] if rung else 0)
        value = measured(*point, RUNGS[rung])
        trial.report(value, RUNGS[rung])
        if rung + 1 == len(RUNGS):
            study.tell(trial, value)
        elif trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            under_way.append((trial, point, rung + 1))
    done = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    best = min(done, key=lambda trial: trial.value)
    return loss(*(best.params[name] for name in "abcd"), 81)


print("seed,random,tpe")
for seed in range(200):
    random = search(seed, optuna.samplers.RandomSampler(seed=seed))
    tpe = search(seed, optuna.samplers.TPESampler(seed=seed, constant_liar=True))
    print(f"{seed},{random!r},{tpe!r}", flush=True)
