"""The environment steps that a search takes until a trial in full is as good as the best of 64 random ones.

    python docs/search/cost_to_reach.py RUNNER docs/search/cartpole_search.yaml

RUNNER is the program, the file a pipeline whose last block is `search:`, with `trials`, `sampler`, `pruner` and `seed` on a line each.
The target is the median, over random searches of 64 trials in full, of the best objective. Each method then has up to `--trials` trials
to reach it, for each of `--seeds` seeds of its proposals:

- `random none`, `tpe none`: every trial in full;
- `tpe asha`, `tpe hyperband`, `random asha`: with the rungs of the file;
- `optuna tpe none`, `optuna tpe halving`: Optuna's TPESampler, without a pruner and with SuccessiveHalvingPruner, on the same space, rungs,
  seeds and trainings, each by `runner exec FILE STAGE --set …`, one trial after the other.

Steps are summed over the seeds of a trial. `steps` counts increments: a trial at a rung goes on from the state of the one below. `from the
start` counts each rung from step 0, which is what Optuna's trainings take where nothing keeps states. A search here has `workers` trials
under way: those that are proposed before the result that reaches the target are counted, although Optuna, with one, has none.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(*command):
    """The standard output of the program; an error with its messages if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout


def search(args, scratch, sampler, pruner, seed, trials):
    """The record of a search: its first line, the jobs decided, and the mean objective of each that ended, by job."""
    text = args.file.read_text()
    block = text[text.index("\nsearch:\n") + 1 :].rstrip().splitlines()
    ours = ("sampler", "pruner", "seed", "trials", "final_seeds")
    kept = [line for line in block if line.strip().split(":")[0] not in ours or not line.startswith("  ") or line[2] == " "]
    if pruner is None:
        rungs = [line for line in block if line.startswith("  pruner:")]
    elif pruner == "none":
        rungs = ["  pruner: none"]
    else:
        rungs = [line.replace("asha:", f"{pruner}:") for line in block if line.startswith("  pruner:")]
    name = f"{sampler}_{pruner}_{seed}_{trials}"
    path = scratch / f"{name}.yaml"
    own = [f"  sampler: {sampler}", f"  seed: {seed}", f"  trials: {trials}", "  final_seeds: 0"]
    head = ["version: 1", f"name: {name}", f"include: [{json.dumps(str(args.file.resolve()))}]"]
    path.write_text("\n".join(head + kept + rungs + own) + "\n")
    run(args.runner, "-q", "exec", path, *args.set)
    (record,) = pathlib.Path(os.environ["RUNNER_HOME"], "searches").glob(f"{name}-*.jsonl")
    lines = [json.loads(line) for line in record.read_text().splitlines() if line]
    decided = [line for line in lines if line["event"] == "decided"]
    sign = sign_of(lines[0])
    ended = {
        line["job"]: sign * statistics.mean(values[0] for values in line["objectives"])
        for line in lines
        if line["event"] == "ended" and line.get("objectives")
    }
    return lines[0], decided, ended


def sign_of(head):
    return 1 if "maximize" in head["search"]["objective"][0] else -1


def ours(args, scratch, sampler, pruner, seed, target, full):
    """(steps until the target is reached, or None; all steps; those from the start until it is reached), where a trial in full takes `full`."""
    head, decided, ended = search(args, scratch, sampler, pruner, seed, args.trials)
    for job in decided:
        job["resource"] = job["resource"] or full  # null without a pruner
    reached = [job["job"] for job in decided if job["resource"] == full and ended.get(job["job"], float("-inf")) >= target]
    until = reached[0] + head["search"]["workers"] if reached else len(decided)
    before, steps, whole, at, whole_at = {}, 0, 0, None, None
    for job in decided:
        if job["job"] == until:
            at, whole_at = steps, whole
        steps += (job["resource"] - before.get(job["trial"], 0)) * head["search"]["seeds"]
        whole += job["resource"] * head["search"]["seeds"]
        before[job["trial"]] = job["resource"]
    if reached and at is None:
        at, whole_at = steps, whole
    return at, steps, whole_at


def suggest(trial, name, domain):
    """A value of a setting from Optuna's trial."""
    ((form, values),) = [(form, values) for form, values in domain.items() if form not in ("step", "when")]
    if form == "choice":
        return json.loads(trial.suggest_categorical(name, [json.dumps(value) for value in values]))
    suggest = trial.suggest_int if "integer" in form else trial.suggest_float
    return suggest(name, *values, log="log" in form, **({"step": domain["step"]} if "step" in domain else {}))


def objective(args, head, settings, rung, seed):
    """The objective of one training up to a rung, computed by the program; of a failed one the worst."""
    ((_, metric),) = head["search"]["objective"][0].items()
    stage, metric = metric.split(".")
    sets = [part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    sets += ["--set", f"{args.train}.with.seed={seed}"]
    if rung != head["rungs"][-1]:
        sets += ["--set", f"{args.train}.with.until={rung}"]
    try:
        lines = run(args.runner, "exec", args.file, stage, "--force", stage, "--json", *args.set, *sets).splitlines()
    except RuntimeError:
        return float("-inf")
    reported = (line for line in map(json.loads, lines) if line["event"] == "metric" and line["stage"] == stage)
    values = [line["value"] for line in reported if line["name"] == metric]
    return sign_of(head) * values[-1]


def optunas(args, head, pruned, seed, target):
    """As `ours`, for Optuna's sampler and pruner."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rungs, seeds = head["rungs"], range(args.first_seed, args.first_seed + head["search"]["seeds"])
    factor = head["search"]["pruner"]["asha"]["factor"]
    halving = optuna.pruners.SuccessiveHalvingPruner(min_resource=rungs[0], reduction_factor=factor)
    pruner = halving if pruned else optuna.pruners.NopPruner()
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    steps = whole = 0
    for _ in range(args.trials):
        trial, before = study.ask(), 0
        settings = {name: suggest(trial, name, domain) for name, domain in head["search"]["over"].items()}
        for rung in rungs if pruned else rungs[-1:]:
            value = statistics.mean(objective(args, head, settings, rung, seed) for seed in seeds)
            steps += (rung - before) * len(seeds)
            whole += rung * len(seeds)
            before = rung
            trial.report(max(value, -1e12), rung)
            if rung != rungs[-1] and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, max(value, -1e12))
            if value >= target:
                return steps, steps, whole
    return None, steps, None


def median(numbers):
    """The median, where a search that did not get there is above all; None if the median is one of those."""
    value = statistics.median_high(float("inf") if number is None else number for number in numbers)
    return None if value == float("inf") else round(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner", help="the program")
    parser.add_argument("file", type=pathlib.Path, help="the pipeline, with a pruner asha")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the proposals of each method")
    parser.add_argument("--references", type=int, default=5, help="random searches of 64 trials that the target is of")
    parser.add_argument("--trials", type=int, default=128, help="the most trials of a search")
    parser.add_argument("--train", default="train", help="the stage that trains")
    parser.add_argument("--first-seed", type=int, default=1, help="the training's seed in the file")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE for each run of the program")
    parser.add_argument("--target", type=float, help="the target, instead of that of random searches")
    parser.add_argument("--methods", nargs="*", help="the methods by name; all without")
    args = parser.parse_args()
    args.set = [part for value in args.set for part in ("--set", value)]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        os.environ.setdefault("RUNNER_HOME", str(scratch / "home"))
        references = range(100, 100 + args.references) if args.target is None else []
        best = [max(search(args, scratch, "random", "none", seed, 64)[2].values()) for seed in references]
        target = statistics.median(best) if best else args.target
        head, _, _ = search(args, scratch, "random", None, 0, 1)
        whole = 64 * head["rungs"][-1] * head["search"]["seeds"]
        print(f"best of 64 random trials: {', '.join(f'{value:g}' for value in best)}; target {target:g}")
        print(f"64 random trials take {whole} steps; rungs {head['rungs']}, {head['search']['seeds']} seeds")
        print("method | steps to the target, median | share of 64 random trials | from the start, median | each seed")
        print("--- | --- | --- | --- | ---")
        methods = [("random", "none"), ("tpe", "none"), ("random", "asha"), ("tpe", "asha"), ("tpe", "hyperband")]
        runs = [
            (f"{sampler} {pruner}", lambda seed, s=sampler, p=pruner: ours(args, scratch, s, p, seed, target, head["rungs"][-1]))
            for sampler, pruner in methods
        ]
        for pruned in (True, False):
            runs.append((f"optuna tpe {'halving' if pruned else 'none'}", lambda seed, p=pruned: optunas(args, head, p, seed, target)))
        for name, method in runs:
            if args.methods and name not in args.methods:
                continue
            results = []
            for seed in range(args.seeds):
                results.append(method(seed))
                print(f"{name}, seed {seed}: {results[-1]}", file=sys.stderr, flush=True)
            middle, start = median([result[0] for result in results]), median([result[2] for result in results])
            share = "-" if middle is None else f"{100 * middle / whole:.0f} %"
            print(f"{name} | {middle} | {share} | {start} | {', '.join(str(result[0]) for result in results)}", flush=True)


if __name__ == "__main__":
    main()
