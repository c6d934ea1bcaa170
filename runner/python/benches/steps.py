"""Steps per second of batched environments in Python, side by side in one process.

    python runner/python/benches/steps.py [SECONDS]

Every line steps with actions drawn beforehand. `runner` is `VectorEnv` with and without copies; `NumPy` is the same environment written in NumPy
over all environments at once, without what ours does beside (masks, final observations); `sync` and `async` are Gymnasium's of its
CartPole, in this process and in worker processes. SB3's `SubprocVecEnv` has a process for each environment: a single one of ours, or Gymnasium's
CartPole. It and `EnvPool`, which steps C++ in threads, are measured where they are installed.
"""

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy

import runner
import runner.gymnasium

try:
    import envpool
except ImportError:
    envpool = None
try:
    from stable_baselines3.common.vec_env import SubprocVecEnv
except ImportError:
    SubprocVecEnv = None

SIZES = [1, 16, 256, 1024]
# A process for each environment: more than this is no use of a machine.
MOST_PROCESSES = 16

PIPELINE = {
    "version": 1,
    "name": "python_steps",
    "stages": {
        "lookup": {"uses": "env/lookup"},
        "cartpole": {"uses": "env/classic", "with": {"id": "CartPole-v1"}},
        "market": {"uses": "ingest/simulated_market", "with": {"days": 652}},
        "chain": {"uses": "greeks/implied_volatility", "needs": {"chain": "market.chain", "rates": "market.rates"}},
        "greeks": {"uses": "greeks/analytic", "needs": {"chain": "chain"}},
        "options": {
            "uses": "env/options",
            "needs": {"chain": "chain", "greeks": "greeks", "rates": "market.rates"},
        },
    },
}


class NumpyLookup:
    """`env/lookup` in NumPy: rows of a table, a reward from position and return, episodes of 252 steps."""

    def __init__(self, num_envs):
        random = numpy.random.default_rng(0)
        self.table = random.normal(size=(2521, 65)).astype(numpy.float32)
        self.returns = (0.01 * random.normal(size=2521)).astype(numpy.float32)
        self.positions = numpy.array([-1.0, -0.5, 0.0, 0.5, 1.0], numpy.float32)
        self.random, self.num_envs = random, num_envs
        self.row = random.integers(0, 2521 - 253, num_envs)
        self.left = random.integers(1, 253, num_envs)
        self.position = numpy.zeros(num_envs, numpy.float32)
        self.obs = numpy.empty((num_envs, 65), numpy.float32)

    def step(self, actions):
        position = self.positions[actions]
        self.row += 1
        self.left -= 1
        reward = position * self.returns[self.row] - numpy.float32(0.0005) * numpy.abs(position - self.position)
        self.position = position
        ended = self.left == 0
        if ended.any():
            n = int(ended.sum())
            self.row[ended] = self.random.integers(0, 2521 - 253, n)
            self.left[ended] = 252
            self.position[ended] = 0.0
        numpy.take(self.table, self.row, axis=0, out=self.obs)
        self.obs[:, 64] = self.position
        return self.obs, reward, ended


class NumpyCartPole:
    """CartPole-v1 in NumPy, of Barto, Sutton and Anderson's equations in Gymnasium's form."""

    def __init__(self, num_envs):
        self.random, self.num_envs = numpy.random.default_rng(0), num_envs
        self.state = self.random.uniform(-0.05, 0.05, (4, num_envs))
        self.length = numpy.zeros(num_envs, numpy.int64)

    def step(self, actions):
        x, v, angle, speed = self.state
        force = numpy.where(actions == 1, 10.0, -10.0)
        cos, sin = numpy.cos(angle), numpy.sin(angle)
        common = (force + 0.05 * speed**2 * sin) / 1.1
        turn = (9.8 * sin - cos * common) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        push = common - 0.05 * turn * cos / 1.1
        self.state = state = numpy.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * speed, speed + 0.02 * turn])
        self.length += 1
        terminated = (abs(state[0]) > 2.4) | (abs(state[2]) > 12 * numpy.pi / 180)
        ended = terminated | (self.length >= 500)
        if ended.any():
            state[:, ended] = self.random.uniform(-0.05, 0.05, (4, int(ended.sum())))
            self.length[ended] = 0
        return state.T.astype(numpy.float32), numpy.ones(self.num_envs), terminated


class EnvPool:
    """EnvPool's CartPole-v1, all environments a step."""

    def __init__(self, num_envs):
        threads = min(num_envs, os.cpu_count())
        self.envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=num_envs, num_threads=threads)
        self.envs.reset()

    def step(self, actions):
        return self.envs.step(actions.astype(numpy.int32))


class Subproc:
    """SB3's `SubprocVecEnv`, whose `reset` takes no seed."""

    def __init__(self, makers):
        self.envs = SubprocVecEnv(makers)
        self.envs.reset()
        self.step, self.close = self.envs.step, self.envs.close


def rate(step, actions, num_envs, seconds):
    """Steps of all environments per second."""
    for action in actions[:10]:
        step(action)
    steps, began, ended = 0, time.perf_counter(), 0.0
    while ended < seconds:
        for action in actions:
            step(action)
        steps += len(actions)
        ended = time.perf_counter() - began
    return steps * num_envs / ended


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / ".runner").mkdir()
        run = runner.exec(PIPELINE, directory=directory, progress=False)
        print(f"{os.cpu_count()} CPU threads; million steps/s at a number of environments of")
        print(f"{'':28}" + "".join(f"{size:>10,}" for size in SIZES))
        for name in ("lookup", "options", "cartpole"):
            single = runner.load_env(run[f"{name}.env"]).single_action_space.n
            variants = {
                "runner": lambda b: runner.load_env(run[f"{name}.env"], b),
                "runner, copy=False": lambda b: runner.load_env(run[f"{name}.env"], b, copy=False),
            }
            make = partial(runner.gymnasium.Env, f"{run.id}/{name}.env", directory=directory)
            if name == "lookup":
                variants["NumPy"] = NumpyLookup
            if name == "cartpole":
                make = partial(gymnasium.make, "CartPole-v1")
                variants["NumPy"] = NumpyCartPole
                if envpool is not None:
                    variants["EnvPool"] = EnvPool
                variants["Gymnasium, sync"] = lambda b: gymnasium.vector.SyncVectorEnv([make] * b)
                variants["Gymnasium, async"] = lambda b: gymnasium.vector.AsyncVectorEnv([make] * b)
            if SubprocVecEnv is not None:
                variants["SubprocVecEnv"] = lambda b: Subproc([make] * b)
            for variant, open_env in variants.items():
                cells = []
                for size in SIZES:
                    if variant in ("Gymnasium, async", "SubprocVecEnv") and size > MOST_PROCESSES:
                        cells.append(f"{'-':>10}")
                        continue
                    envs = open_env(size)
                    if hasattr(envs, "reset"):
                        envs.reset(seed=0)
                    few = 20 if "sync" in variant or "Subproc" in variant else 200
                    actions = list(numpy.random.default_rng(1).integers(0, single, (few, size)))
                    cells.append(f"{rate(envs.step, actions, size, seconds) / 1e6:>10.3g}")
                    if hasattr(envs, "close"):
                        envs.close()
                print(f"{name + ', ' + variant:28}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
