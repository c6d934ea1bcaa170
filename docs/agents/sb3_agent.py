"""Algorithms of stable-baselines3 and sb3-contrib: their policies are read as networks of the program's own."""

import io

import sb3_contrib
import stable_baselines3
from runner.stable_baselines3 import VecEnv
from runner.trained import Sb3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize


class Rollouts(BaseCallback):
    """Validates and keeps the model at the start of every rollout."""

    def __init__(self, ctx):
        super().__init__()
        self.ctx = ctx

    def _on_rollout_start(self):
        self.ctx.validate(lambda: zipped(self.model))

    def _on_step(self):
        return not self.ctx.done and not self.ctx.cancelled


def zipped(model):
    file = io.BytesIO()
    model.save(file)
    return Sb3(file.getvalue())


def train(ctx, env, total_timesteps, algorithm, policy="MlpPolicy", learning_rate=1e-3, **settings):
    make = getattr(stable_baselines3, algorithm, None) or getattr(sb3_contrib, algorithm)
    envs = VecNormalize(VecEnv(env), norm_obs=False, gamma=settings.get("gamma", 0.99))
    schedule = lambda left: learning_rate * left  # noqa: E731  linear to 0
    model = make(policy, envs, seed=ctx.seed, device=ctx.device, learning_rate=schedule, **settings)
    model.learn(total_timesteps, callback=Rollouts(ctx))
    return zipped(model)
