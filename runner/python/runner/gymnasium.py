"""Environments for Gymnasium: `VectorEnv`, a batch, and `Env`, a single one.

Once it is imported, `gymnasium.make("runner/Env-v0", artifact="latest/env")` and `gymnasium.make_vec` open them, too; with the id
`runner.gymnasium:runner/Env-v0` Gymnasium imports it.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ._error import Error

if TYPE_CHECKING:
    from typing import Self

    from . import _native
    from ._runs import Artifact
    from .policy import Policy
    from .torch import TorchVectorEnv


def _open(
    artifact: str | Artifact,
    num_envs: int,
    seed: int,
    split: str,
    policy: Policy | None,
    directory: str | PathLike[str] | None,
) -> _Batch:
    """Opens an `env` artifact."""
    # Where `train/python` serves the environment there are neither runs nor a native module.
    from . import _native, _program
    from ._runs import Artifact

    name = artifact
    artifact = name if isinstance(name, Artifact) else Artifact(name, directory)
    if artifact.type != "env":
        raise Error(f"`{name}` is of type `{artifact.type}`, not an environment", "give the output of an `env/…` stage")
    if num_envs < 1:
        raise Error(f"cannot open {num_envs} environments", "set the number of environments to 1 or more")
    home = _program.home(artifact._directory)
    native = None if policy is None else policy._native
    return _Batch(_native.Env(home, artifact.digest, num_envs, seed, split, native))


class _Batch:
    """A batch with NumPy's views of its buffers: `native` is the native module's, or the one that `train/python` serves."""

    def __init__(self, native: _native.Env):
        self.native = env = native
        num_envs = env.num_envs
        self.components = len(env.choices) or len(env.action_names)
        self.continuous = env.action_kind == "continuous"
        number = numpy.float32 if self.continuous else numpy.uint32
        d, m = len(env.observation_names), sum(env.choices)

        def view(buffer: _native.Buffer, dtype: Any, *shape: int) -> Any:
            # Views of no elements are refused.
            return numpy.frombuffer(buffer, dtype).reshape(shape) if min(shape) > 0 else numpy.empty(shape, dtype)

        actions, obs, reward, terminated, truncated, final_obs, masks = env.buffers()
        shape = (num_envs,) if env.action_kind == "discrete" else (num_envs, self.components)
        self.actions = view(actions, number, *shape)
        self.obs = view(obs, numpy.float32, num_envs, d)
        self.reward = view(reward, numpy.float32, num_envs)
        self.terminated = view(terminated, numpy.bool_, num_envs)
        self.truncated = view(truncated, numpy.bool_, num_envs)
        self.final_obs = view(final_obs, numpy.float32, num_envs, d)
        self.masks = view(masks, numpy.bool_, num_envs, m)

    def observation_space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-numpy.inf, numpy.inf, (self.obs.shape[1],), numpy.float32)

    def action_space(self) -> gymnasium.Space:
        env = self.native
        if self.continuous:
            low, high = (numpy.array(bound, numpy.float32) for bound in env.bounds)
            return gymnasium.spaces.Box(low, high, dtype=numpy.float32)
        if env.action_kind == "discrete":
            return gymnasium.spaces.Discrete(env.choices[0])
        return gymnasium.spaces.MultiDiscrete(env.choices)

    def step(self, actions: Any) -> bool:
        """Takes the actions; true if an episode ended."""
        actions = numpy.asarray(actions)
        if actions.shape != self.actions.shape:
            raise Error(
                f"the actions have the shape {actions.shape}, not {self.actions.shape}", "give one for each environment"
            )
        if not self.continuous and actions.dtype.kind not in "iub":
            raise Error(f"the actions are of type {actions.dtype}, not integers", "they are the numbers of choices")
        numpy.copyto(self.actions, actions, casting="unsafe")
        return self.native.step()


class VectorEnv(gymnasium.vector.VectorEnv):
    """An `env` artifact as a batch of environments that step together; see `runner.load_env` for the arguments.

    An environment whose episode ends starts the next one in the same step (`AutoresetMode.SAME_STEP`): `obs` shows the first observation of the
    next episode, and `info["final_obs"]` the last one of the ended, where `info["_final_obs"]` is true. A masked choice, or one
    beyond the space, counts as choice 0; a continuous component beyond its bounds as the nearer bound.

    The interpreter's lock is released while the batch steps. With `copy=False`, `reset`, `step` and `action_masks` return read-only views
    that the next step overwrites.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        artifact: str | Artifact,
        num_envs: int = 1,
        *,
        seed: int = 0,
        split: str = "train",
        policy: Policy | None = None,
        copy: bool = True,
        directory: str | PathLike[str] | None = None,
    ):
        self._show(_open(artifact, num_envs, seed, split, policy, directory), copy)

    @classmethod
    def _of(cls, batch: _Batch, copy: bool) -> Self:
        env = cls.__new__(cls)
        env._show(batch, copy)
        return env

    def _show(self, batch: _Batch, copy: bool) -> None:
        self._batch = batch
        self._copy = copy
        self.num_envs = num_envs = batch.native.num_envs
        self.single_observation_space = self._batch.observation_space()
        self.single_action_space = self._batch.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def observation_names(self) -> list[str]:
        """The name of every element of an observation."""
        return self._batch.native.observation_names

    @property
    def action_names(self) -> list[str]:
        """The name of every choice of a discrete action, else of every component."""
        return self._batch.native.action_names

    @property
    def evaluation_episodes(self) -> int | None:
        """The number of episodes that an evaluation of the split has; `None` where episodes are drawn."""
        return self._batch.native.evaluation_episodes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Starts an episode in every environment; with `seed`, all that follows depends on it alone."""
        super().reset(seed=seed)
        self._batch.native.reset(seed)
        return self._out(self._batch.obs), {}

    def step(
        self, actions: Any
    ) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray, dict[str, Any]]:
        """Takes one action in each environment."""
        batch = self._batch
        info: dict[str, Any] = {}
        if batch.step(actions):
            # Of other environments the row is zero or an older observation.
            info = {"final_obs": batch.final_obs.copy(), "_final_obs": batch.terminated | batch.truncated}
        if not self._copy:
            return batch.obs, batch.reward, batch.terminated, batch.truncated, info
        return batch.obs.copy(), batch.reward.copy(), batch.terminated.copy(), batch.truncated.copy(), info

    def observe(self) -> numpy.ndarray:
        """The observations that the last step or reset showed; where a training goes on from a checkpoint, those at the checkpoint."""
        return self._out(self._batch.obs)

    def action_masks(self) -> numpy.ndarray:
        """Booleans `[B, M]`, true where a choice of the shown state is allowed, component by component; `[B, 0]` where actions are continuous."""
        return self._out(self._batch.masks)

    def views(self) -> VectorEnv:
        """The same environments with `copy=False`."""
        return VectorEnv._of(self._batch, copy=False)

    def torch(self, device: str = "cpu") -> TorchVectorEnv:
        """The same environments with tensors of torch; those of `views().torch()` share the memory of the buffers."""
        from .torch import TorchVectorEnv

        return TorchVectorEnv(self, device)

    def _out(self, array: numpy.ndarray) -> numpy.ndarray:
        return array.copy() if self._copy else array


class Env(gymnasium.Env):
    """An `env` artifact as a single environment; the arguments are those of `runner.load_env`."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        artifact: str | Artifact,
        *,
        seed: int = 0,
        split: str = "train",
        policy: Policy | None = None,
        directory: str | PathLike[str] | None = None,
    ):
        self._batch = _open(artifact, 1, seed, split, policy, directory)
        self._single = self._batch.native.action_kind == "discrete"
        # True where the buffers show the first observation of an episode that has not begun for the caller.
        self._waiting = False
        self.observation_space = self._batch.observation_space()
        self.action_space = self._batch.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Starts an episode; with `seed`, all that follows depends on it alone."""
        super().reset(seed=seed)
        if seed is not None or not self._waiting:
            self._batch.native.reset(seed)
        self._waiting = False
        return self._batch.obs[0].copy(), {}

    def step(self, action: Any) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        batch = self._batch
        if self._waiting:
            raise Error("the episode has ended", "call `reset` first")
        self._waiting = batch.step(numpy.asarray(action).reshape(batch.actions.shape))
        obs = batch.final_obs if self._waiting else batch.obs
        return obs[0].copy(), float(batch.reward[0]), bool(batch.terminated[0]), bool(batch.truncated[0]), {}

    def action_masks(self) -> numpy.ndarray:
        """Booleans `[M]`, true where a choice of the shown state is allowed, as sb3-contrib's MaskablePPO asks for them."""
        return self._batch.masks[0].copy()


# The family is the artifact's: the names are for readers.
for _name in ("Env", "Classic", "Hedging", "Lookup", "Options", "Python", "Stocks", "Table"):
    gymnasium.register(f"runner/{_name}-v0", entry_point=Env, vector_entry_point=VectorEnv)
