"""Environments for stable-baselines3 and sb3-contrib."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Sequence

import numpy
from stable_baselines3.common.vec_env import VecEnv as Base

from ._error import Error
from .gymnasium import VectorEnv, _open

if TYPE_CHECKING:
    from ._runs import Artifact
    from .policy import Policy


class VecEnv(Base):
    """An `env` artifact, or a `VectorEnv` of this package, as stable-baselines3's VecEnv; the arguments are those of `runner.load_env`.
    `action_masks` serves MaskablePPO.

    The `info` of an environment whose episode ended has `terminal_observation`, `TimeLimit.truncated` and `episode` (`r`, its return, and `l`,
    its length), as SB3's own wrappers give them.
    """

    def __init__(
        self,
        artifact: str | Artifact | VectorEnv,
        num_envs: int = 1,
        *,
        seed: int = 0,
        split: str = "train",
        policy: Policy | None = None,
        directory: str | PathLike[str] | None = None,
    ):
        if isinstance(artifact, VectorEnv):
            self._batch = artifact._batch
        else:
            self._batch = _open(artifact, num_envs, seed, split, policy, directory)
        num_envs = self._batch.native.num_envs
        self.render_mode = None
        self._ended = False
        # Where a training goes on from a checkpoint, so do its episodes.
        counts = getattr(self._batch.native, "running", None)
        self._return, self._length = counts or (numpy.zeros(num_envs), numpy.zeros(num_envs, numpy.int64))
        super().__init__(num_envs, self._batch.observation_space(), self._batch.action_space())

    def reset(self) -> numpy.ndarray:
        """Starts an episode in every environment; the first seed of `seed` decides what follows."""
        self._batch.native.reset(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self._return[:] = 0.0
        self._length[:] = 0
        return self._batch.obs.copy()

    def step_async(self, actions: numpy.ndarray) -> None:
        """Takes one action in each environment, at once."""
        self._ended = self._batch.step(actions)

    def step_wait(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, list[dict[str, Any]]]:
        """The outcome of the last step."""
        batch = self._batch
        done = batch.terminated | batch.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._return += batch.reward
        self._length += 1
        if self._ended:
            for i in numpy.flatnonzero(done):
                infos[i] = {
                    "terminal_observation": batch.final_obs[i].copy(),
                    "TimeLimit.truncated": bool(batch.truncated[i] and not batch.terminated[i]),
                    "episode": {"r": float(self._return[i]), "l": int(self._length[i])},
                }
                self._return[i] = 0.0
                self._length[i] = 0
        return batch.obs.copy(), batch.reward.copy(), done, infos

    def action_masks(self) -> numpy.ndarray:
        """Booleans `[B, M]`, true where a choice of the shown state is allowed."""
        return self._batch.masks.copy()

    def close(self) -> None:
        """Nothing is held that the garbage collector does not free."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of each environment, which is the batch's."""
        return [getattr(self, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of the batch; of single environments none can be set."""
        if len(self._rows(indices)) != self.num_envs:
            raise Error(f"`{attr_name}` cannot be set for single environments of a batch", "set it for all")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Calls a method of each environment: `action_masks` alone.

        Raises:
            AttributeError: another method.
        """
        if method_name != "action_masks":
            raise AttributeError(f"environments of a batch have no method `{method_name}`, only `action_masks`")
        masks = self.action_masks()
        return [masks[i] for i in self._rows(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """False: nothing wraps a single environment."""
        return [False] * len(self._rows(indices))

    def _rows(self, indices: Any) -> Sequence[int]:
        return list(self._get_indices(indices))
