"""Environments with tensors of torch."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy
import torch

from .gymnasium import VectorEnv


class TorchVectorEnv(gymnasium.vector.VectorEnv):
    """A `VectorEnv` that takes and returns tensors; `VectorEnv.torch` makes one.

    On the CPU, tensors of `env.views().torch()` share the memory of the environments' buffers, which the next step overwrites.
    """

    def __init__(self, env: VectorEnv, device: str = "cpu"):
        self.env = env
        self.device = torch.device(device)
        self.num_envs = env.num_envs
        self.metadata = env.metadata
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[torch.Tensor, dict[str, Any]]:
        """Starts an episode in every environment, as `VectorEnv.reset`."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._tensor(obs), info

    def step(self, actions: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Takes one action in each environment; arrays of `info` are tensors, too."""
        if isinstance(actions, torch.Tensor):
            actions = actions.detach().cpu().numpy()
        *out, info = self.env.step(actions)
        obs, reward, terminated, truncated = map(self._tensor, out)
        return obs, reward, terminated, truncated, {name: self._tensor(array) for name, array in info.items()}

    def observe(self) -> torch.Tensor:
        """The observations that the last step or reset showed."""
        return self._tensor(self.env.observe())

    def action_masks(self) -> torch.Tensor:
        """Booleans `[B, M]`, true where a choice of the shown state is allowed."""
        return self._tensor(self.env.action_masks())

    def _tensor(self, array: numpy.ndarray) -> torch.Tensor:
        with warnings.catch_warnings():
            # The environments' buffers are read-only for NumPy; torch has no such tensors.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(array).to(self.device)
