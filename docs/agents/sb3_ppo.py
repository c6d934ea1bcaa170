"""PPO of stable-baselines3, on environments with one choice a step."""

import io
import os

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from runner.stable_baselines3 import VecEnv
from runner.trained import Saved
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy


def train(ctx, env, total_timesteps, **settings):
    model = PPO("MlpPolicy", VecEnv(env), seed=ctx.seed, device=ctx.device, **settings)
    # After the network is made: random numbers go on from here.
    state = ctx.resume()
    if state is not None:
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimizer"])
        model.num_timesteps, model._n_updates = state["steps"], state["updates"]
        model._last_obs, model._last_episode_starts = state["obs"], state["starts"]
    model.learn(total_timesteps - model.num_timesteps, callback=Updates(ctx), reset_num_timesteps=state is None)
    return saved(model)


class Updates(BaseCallback):
    """Between two updates."""

    def __init__(self, ctx):
        super().__init__()
        self.ctx = ctx

    def _on_step(self):
        return True

    def _on_rollout_start(self):
        model, ctx = self.model, self.ctx
        for name, value in model.logger.name_to_value.items():
            if name.startswith("train/"):
                ctx.log(name, value)
        ctx.validate(lambda: saved(model))
        ctx.checkpoint(
            {
                "policy": model.policy.state_dict(),
                "optimizer": model.policy.optimizer.state_dict(),
                "steps": model.num_timesteps,
                "updates": model._n_updates,
                "obs": model._last_obs,
                "starts": model._last_episode_starts,
            }
        )


def saved(model):
    file = io.BytesIO()
    torch.save(model.policy.state_dict(), file)
    return Saved("my_agent:load", {"policy.pt": file.getvalue()})


def load(directory, spec):
    """The policy, from the file that `saved` made."""
    observations = Box(-np.inf, np.inf, (len(spec["observation"]),))
    policy = ActorCriticPolicy(observations, Discrete(spec["action"]["choices"][0]), lambda _: 0.0)
    policy.load_state_dict(torch.load(os.path.join(directory, "policy.pt"), weights_only=True))
    return lambda obs: {"logits": policy.get_distribution(torch.as_tensor(obs)).distribution.logits}
