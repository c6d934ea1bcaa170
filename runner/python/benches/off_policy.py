"""`train/sac` and `train/td3` beside sbx's SAC and TD3 (JAX) on Pendulum, by turns: steps per second of wall time.

    python runner/python/benches/off_policy.py [RUNNER] [TURNS]

Both have networks of 256 and 256, batches of 256 and an update a step. A rate is that of the last 4,000 of 5,000 steps,
without start and compilation. Needs sbx-rl; RUNNER is the program, by default that on the PATH.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sbx
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

FIRST, LAST = 1_000, 5_000

PIPELINE = """
version: 1
name: off_policy
params: {{ steps: 1 }}
stages:
  env: {{ uses: env/classic, with: {{ id: Pendulum-v1 }} }}
  train:
    uses: train/{algorithm}
    needs: {{ env: env }}
    with:
      total_timesteps: "${{params.steps}}"
      buffer_size: 200000
      device: cpu
      policy_kwargs: {{ net_arch: {{ pi: [256, 256], qf: [256, 256] }} }}
"""


class Clock(BaseCallback):
    """The times at the first and the last step that count."""

    def _on_step(self):
        if self.num_timesteps == FIRST:
            self.began = time.perf_counter()
        elif self.num_timesteps == LAST:
            self.ended = time.perf_counter()
        return True


def ours(program, algorithm):
    def seconds(steps):
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "p.yaml"
            file.write_text(PIPELINE.format(algorithm=algorithm))
            (Path(name) / ".runner").mkdir()
            began = time.perf_counter()
            command = [program, "-q", "exec", file, "--set", f"steps={steps}"]
            subprocess.run(command, cwd=name, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - began

    return (LAST - FIRST) / (seconds(LAST) - seconds(FIRST))


def theirs(algorithm):
    envs, clock = make_vec_env("Pendulum-v1", seed=1), Clock()
    settings = {"batch_size": 256, "train_freq": 1, "gradient_steps": 1, "buffer_size": 200_000, "seed": 1}
    settings["policy_kwargs"] = {"net_arch": {"pi": [256, 256], "qf": [256, 256]}}
    if algorithm == "td3":
        settings["action_noise"] = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
    model = getattr(sbx, algorithm.upper())("MlpPolicy", envs, **settings)
    model.learn(LAST, callback=clock)
    return (LAST - FIRST) / (clock.ended - clock.began)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "runner"
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    for algorithm in ("sac", "td3"):
        rates = [(ours(program, algorithm), theirs(algorithm)) for _ in range(turns)]
        mine, other = (statistics.median(of) for of in zip(*rates))
        ratio = statistics.median(a / b for a, b in rates)
        rate = f"train/{algorithm} {mine:,.0f}, sbx {other:,.0f} steps/s"
        print(f"{algorithm.upper()}: {rate}, ratio {ratio:.1f}", flush=True)


if __name__ == "__main__":
    main()
