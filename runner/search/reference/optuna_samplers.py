"""The simple regret of Optuna's samplers on known functions, after 64 and 200 trials. See README.md."""

import json
import sys
import time
import warnings

import optuna
import torch
from functions import FUNCTIONS, MINIMA

SEEDS = 20
BUDGETS = (64, 200)
SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "sobol": lambda seed: optuna.samplers.QMCSampler(qmc_type="sobol", scramble=True, seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe_multivariate": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
    "cma_es": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
}
# CMA-ES is for numbers.
NUMBERS = ("branin", "hartmann6", "rastrigin5")


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(SAMPLERS)
    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    rows = []
    for name in names:
        for function, objective in FUNCTIONS.items():
            if name == "cma_es" and function not in NUMBERS:
                continue
            regrets = {budget: [] for budget in BUDGETS}
            started = time.perf_counter()
            for seed in range(SEEDS):
                study = optuna.create_study(sampler=SAMPLERS[name](seed))
                study.optimize(objective, n_trials=max(BUDGETS))
                values = [trial.value for trial in study.trials]
                for budget in BUDGETS:
                    regrets[budget].append(float(f"{min(values[:budget]) - MINIMA[function]:.6g}"))
            seconds = time.perf_counter() - started
            for budget in BUDGETS:
                rows.append(
                    {
                        "function": function,
                        "sampler": name,
                        "trials": budget,
                        "regrets": sorted(regrets[budget]),
                    }
                )
            print(name, function, [sorted(regrets[b])[SEEDS // 2] for b in BUDGETS], f"{seconds:.0f} s", file=sys.stderr)
            with open(out, "w") as file:
                file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


main()
