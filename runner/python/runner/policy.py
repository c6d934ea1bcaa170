"""Policies."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy

from . import _native, _program
from ._error import Error
from ._runs import Artifact

# What a policy has: a network of the program's own, or the description of another form.
_FILES = ("policy.safetensors", "policy.json")


class Policy:
    """A policy of any form; the code that decides is that of `evaluate/backtest`, and its decisions are equal bit by bit.

    Observations are those of the environment, without normalisation by running statistics of training: the policy has them, and applies them.
    An environment that normalises observations itself shows them in another normalisation for another split of data: open it with
    `load_env(…, policy=policy)`.
    """

    def __init__(self, name: str | PathLike[str] | Artifact, directory: str | PathLike[str] | None = None):
        if isinstance(name, Artifact):
            artifact = name
        elif Path(name).is_file():
            self._native = _native.Policy(Path(name).read_bytes())
            return
        else:
            artifact = Artifact(str(name), directory)
        if artifact.type != "policy" or not any(file in artifact.files for file in _FILES):
            raise Error(f"`{name}` is of type `{artifact.type}`, not a policy", "give the output of a `train/…` stage, `ingest/policy` or `policy/rule`")
        self._native = _native.Policy.open(_program.home(artifact._directory), artifact.digest)

    def __repr__(self) -> str:
        return f"<Policy of {self._native.kind} for {self._native.env_name}>"

    @property
    def form(self) -> str:
        """`native`, `onnx`, `python` or `rule`."""
        return self._native.form

    @property
    def observation_names(self) -> list[str]:
        """The name of every element of an observation."""
        return self._native.observation_names

    @property
    def action_names(self) -> list[str]:
        """The name of every choice of a discrete action, else of every component."""
        return self._native.action_names

    def for_program(self, actions: Any) -> numpy.ndarray:
        """Actions `[B, …]` of `predict` as the environment's own program takes them: counted from its `start`, and in its shape.

        `runner.load_env` gives environments that take the actions of `predict` themselves.
        """
        actions = numpy.asarray(actions)
        if self._native.action_start:
            actions = actions + numpy.array(self._native.action_start)
        shape = self._native.action_shape
        return actions if shape is None else actions.reshape(-1, *shape)

    def seed(self, seed: int) -> None:
        """Starts the random numbers of sampled actions, as `evaluate/backtest` does with this seed; 0 at first."""
        self._native.seed(seed)

    def predict(
        self,
        obs: Any,
        state: numpy.ndarray | None = None,
        episode_start: Any = None,
        action_masks: Any = None,
        deterministic: bool = True,
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Chooses an action for each observation, as stable-baselines3's `predict`.

        Args:
            obs: `[B, D]`, or `[D]` for one environment.
            state: the state that the last call returned, `[B, S]`; `None` at the start of all episodes.
            episode_start: `[B]`, true where the observation is the first of an episode; none is if it is `None`.
            action_masks: `[B, M]` or `[M]`, true where a choice is allowed; all are if it is `None`.
            deterministic: the likeliest action, or the mean of a continuous one; else one that is drawn.

        Returns:
            Actions: `[B]` of a discrete space, else `[B, K]`, without B for one environment; continuous ones within their bounds. And the new state
            `[B, S]`.

        Raises:
            Error: a shape is wrong, a mask allows nothing, or a policy of one's own fails.
        """
        native = self._native
        obs = numpy.ascontiguousarray(obs, numpy.float32)
        single = obs.ndim == 1
        obs = numpy.atleast_2d(obs)
        d = len(native.observation_names)
        if obs.ndim != 2 or obs.shape[1] != d:
            raise Error(f"the observations have the shape {obs.shape}, not (B, {d})", "`observation_names` has their elements")
        batch = len(obs)
        shape = (batch, native.state_len)
        if state is None:
            state = numpy.zeros(shape, numpy.float32)
        elif numpy.shape(state) != shape:
            raise Error(f"the state has the shape {numpy.shape(state)}, not {shape}", "give the one that was returned last")
        else:
            # A copy: what the caller holds stays as it is.
            state = numpy.array(state, numpy.float32, order="C")
        if episode_start is None:
            starts = numpy.zeros(batch, numpy.bool_)
        else:
            starts = numpy.ascontiguousarray(numpy.atleast_1d(episode_start), numpy.bool_)
        if starts.shape != (batch,):
            raise Error(f"`episode_start` has the shape {starts.shape}, not ({batch},)")
        masks = None
        if action_masks is not None and native.mask_len > 0:
            masks = numpy.ascontiguousarray(numpy.atleast_2d(action_masks), numpy.bool_)
            if masks.shape != (batch, native.mask_len):
                raise Error(f"`action_masks` has the shape {masks.shape}, not ({batch}, {native.mask_len})")
            masks = masks.view(numpy.uint8)
        continuous = native.action_kind == "continuous"
        actions = numpy.empty((batch, native.num_components), numpy.float32 if continuous else numpy.int64)
        native.act(obs, masks, starts.view(numpy.uint8), state, actions, deterministic)
        if continuous:
            actions = numpy.clip(actions, *(numpy.array(bound, numpy.float32) for bound in native.bounds))
        elif native.action_kind == "discrete":
            actions = actions[:, 0]
        return (actions[0] if single else actions), state
