"""What a stage costs besides its work: a function of Python, called once, by symbol or by partition, beside a program and a built-in stage, on the same bars.

    python runner/python/benches/stage_overhead.py [REPETITIONS]

The bars are of one symbol, a row for each of so many years, which are as many partitions. The least of the repetitions is shown, each in a store of its own. `again` is a new last
row: of the partitions, one is computed. What is new code is checked (`checked`); the other stages by partition leave that out.
"""

import os
import sys
import tempfile
from pathlib import Path

import runner

YEARS = [1, 400]
MODULE = """
from runner import stage

def whole(ctx, bars):
    return bars.select(["symbol", "date"]).append_column("value", bars["close"])

@stage(by="symbol")
def by_symbol(ctx, bars):
    return whole(ctx, bars)

@stage(lookback=1)
def lookback(ctx, bars):
    return whole(ctx, bars)

checked = lookback

@stage(by="partition")
def by_partition(ctx, bars):
    return whole(ctx, bars)
"""

FUNCTIONS = ["whole", "by_symbol", "by_partition", "lookback", "checked"]


def pipeline():
    python = {"uses": "python", "python": sys.prefix, "needs": {"bars": "bars"}, "outputs": {"values": "features"}}
    return {
        "version": 1,
        "name": "stage_overhead",
        "stages": {
            "bars": {
                "run": "cp bars.csv ${outputs.bars}",
                "files": ["bars.csv"],
                "outputs": {"bars": {"path": "out.csv", "type": "bars"}},
            },
            "built_in": {"uses": "features/technical", "needs": {"bars": "bars"}, "with": {"indicators": [{"sma": 2}]}},
            "program": {
                "run": "cp bars.csv ${outputs.bars}; : ${needs.bars}",
                "files": ["bars.csv"],
                "needs": {"bars": "bars"},
                "outputs": {"bars": {"path": "out.csv", "type": "bars"}},
            },
            **{name: {**python, "call": f"functions:{name}", "check": "whole" if name == "checked" else "none"} for name in FUNCTIONS},
        },
    }


def write(directory, years, extra=0):
    rows = [f"A,{year}-06-28,{10 + year % 7}" for year in range(1800, 1800 + years)]
    rows += [f"A,{1799 + years}-06-29,11"] * extra
    (directory / "bars.csv").write_text("symbol,date,close\n" + "\n".join(rows) + "\n")


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    stages = ["built_in", "program", *FUNCTIONS]
    best = {}
    for years in YEARS:
        for _ in range(repetitions):
            with tempfile.TemporaryDirectory() as name:
                directory = Path(name)
                (directory / ".runner").mkdir()
                (directory / "functions.py").write_text(MODULE)
                for extra in (0, 1):
                    write(directory, years, extra)
                    run = runner.exec(pipeline(), directory=directory, options=["--jobs", "1"], progress=False)
                    for stage in stages:
                        key = (stage, years, extra)
                        best[key] = min(best.get(key, 1e9), run.stages[stage].seconds)
    few, many = YEARS
    print(f"{os.cpu_count()} CPU threads; milliseconds")
    print(f"{'':14}{'1 partition':>14}{f'{many} partitions':>18}{'a partition':>14}{'again':>10}")
    for stage in stages:
        one, all_, again = (1e3 * best[stage, years, extra] for years, extra in ((few, 0), (many, 0), (many, 1)))
        print(f"{stage:14}{one:>14.1f}{all_:>18.1f}{(all_ - one) / (many - few):>14.3f}{again:>10.1f}")


if __name__ == "__main__":
    main()
