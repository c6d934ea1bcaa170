"""FinRL's eight indicators of a panel of 30 stocks and 2,520 days: by stockstats, which FinRL computes them with, and by `features/technical`.

    python runner/python/benches/finrl_features.py [REPETITIONS]

stockstats takes one symbol after the other, without FinRL's joins of the results, which take longer than it. Ours is the stage as a run has it: from stored bars to stored features,
then for one day more. The least of the repetitions is shown. `runner bench features` has the indicators alone, without the store.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import stockstats

import runner

NAMES = ["macd", "boll_ub", "boll_lb", "rsi_30", "cci_30", "dx_30", "close_30_sma", "close_60_sma"]
INDICATORS = [{"macd": [12, 26, 9]}, {"bollinger": {"period": 20}}, {"rsi": 30}, {"cci": 30}, {"dx": 30}, {"sma": 30}, {"sma": 60}]


def pipeline(days):
    return {
        "version": 1,
        "name": "finrl_features",
        "stages": {
            "panel": {"uses": "ingest/simulated_panel", "with": {"stocks": 30, "days": days}},
            "features": {
                "uses": "features/technical",
                "needs": {"bars": "panel.bars"},
                "with": {"convention": "stockstats", "indicators": INDICATORS},
            },
        },
    }


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    theirs, ours, appended = [], [], []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / ".runner").mkdir()
            run = runner.exec(pipeline(2520), directory=name, progress=False)
            ours.append(run.stages["features"].seconds)
            appended.append(runner.exec(pipeline(2521), directory=name, progress=False).stages["features"].seconds)
            frame = run["panel.bars"].to_pandas()
        began = time.perf_counter()
        for _, bars in frame.groupby("symbol", observed=True):
            stock = stockstats.StockDataFrame.retype(bars[["date", "open", "high", "low", "close", "volume"]].copy())
            for indicator in NAMES:
                stock[indicator]
        theirs.append(time.perf_counter() - began)
    rows = len(frame)
    print(f"{os.cpu_count()} CPU threads, {rows:,} rows")
    for what, seconds in (("stockstats", min(theirs)), ("features/technical", min(ours)), ("one day more", min(appended))):
        print(f"{what:20}{seconds:>9.3f} s{rows / seconds:>14,.0f} rows/s{min(theirs) / seconds:>8.1f} x")


if __name__ == "__main__":
    main()
