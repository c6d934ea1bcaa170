"""sb3-contrib's MaskablePPO on our options environment beside `train/ppo`: training speed, and what both policies earn in one and the same backtest.

    python runner/python/benches/maskable_ppo.py [TIMESTEPS] [SEEDS]

Both have SB3's defaults but for the rollout: 16 environments, 128 steps, minibatches of 512, an MLP of two hidden layers of 64. MaskablePPO steps the environment
through `runner.stable_baselines3.VecEnv`; its policy enters the pipeline by `train/import`. The seconds are those of training alone.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

import runner
from runner.stable_baselines3 import VecEnv

ENVS, STEPS, BATCH = 16, 128, 512

PIPELINE = {
    "version": 1,
    "name": "maskable_ppo",
    "stages": {
        "market": {"uses": "ingest/simulated_market", "with": {"days": 652}},
        "chain": {"uses": "greeks/implied_volatility", "needs": {"chain": "market.chain", "rates": "market.rates"}},
        "greeks": {"uses": "greeks/analytic", "needs": {"chain": "chain"}},
        "env": {"uses": "env/options", "needs": {"chain": "chain", "greeks": "greeks", "rates": "market.rates"}},
    },
}


def main():
    timesteps = int(sys.argv[1]) if len(sys.argv) > 1 else 102_400
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / ".runner").mkdir()
        env = runner.exec(PIPELINE, directory=directory, progress=False)["env"]
        print(f"{os.cpu_count()} CPU threads, torch {torch.__version__} with {torch.get_num_threads()}; {timesteps:,} steps")
        print(f"{'':14}{'seed':>6}{'steps/s':>12}{'total return':>15}{'Sharpe':>10}")
        for seed in range(1, seeds + 1):
            envs = VecEnv(env, ENVS, seed=seed)
            model = MaskablePPO("MlpPolicy", envs, n_steps=STEPS, batch_size=BATCH, seed=seed, device="cpu")
            began = time.perf_counter()
            model.learn(timesteps)
            theirs = timesteps / (time.perf_counter() - began)
            model.save(directory / f"model{seed}.zip")
            ppo = {"total_timesteps": timesteps, "n_envs": ENVS, "n_steps": STEPS, "batch_size": BATCH, "seed": seed}
            stages = {
                **PIPELINE["stages"],
                "train": {"uses": "train/ppo", "needs": {"env": "env"}, "with": ppo},
                "sb3": {"uses": "train/import", "needs": {"env": "env"}, "with": {"path": f"model{seed}.zip"}},
                "ours": {"uses": "evaluate/backtest", "needs": {"env": "env", "policy": "train"}},
                "theirs": {"uses": "evaluate/backtest", "needs": {"env": "env", "policy": "sb3"}},
            }
            run = runner.exec({**PIPELINE, "stages": stages}, directory=directory, progress=False)
            ours = timesteps / run.stages["train"].seconds
            for who, rate, metrics in (("train/ppo", ours, run.metrics["ours"]), ("MaskablePPO", theirs, run.metrics["theirs"])):
                print(f"{who:14}{seed:>6}{rate:>12,.0f}{metrics['total_return']:>15.4f}{metrics['sharpe']:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
