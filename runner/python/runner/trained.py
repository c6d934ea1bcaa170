"""What a function of `train/python` returns: a policy that was trained, in one of four forms.

Files are bytes, or the path of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any


@dataclass
class Saved:
    """Files, and a function of the project that makes a policy of them.

    Attributes:
        load: `MODULE:FUNCTION`. It is called with the directory of the files and the specification of the environment, and returns a callable
            `policy(obs, masks=…, state=…, episode_start=…)`.
        files: by name. A pickle is refused without `trust: pickle`; torch's state dicts are not pickles in that sense.
        state_len: the numbers of an environment's recurrent state; 0 without memory.
    """

    load: str
    files: Mapping[str, bytes | str | PathLike[str]] = field(default_factory=dict)
    state_len: int = 0


@dataclass
class Onnx:
    """A model in ONNX, of observations `[N, D]`.

    Attributes:
        model: its bytes, or the path of its file.
        units: of continuous actions: `environment`, `unit` (-1 and 1 are the bounds) or `tanh` (before a hyperbolic tangent).
        tensors: the roles of inputs and outputs by their names, where the names do not say them, as `ingest/policy` takes them.
    """

    model: bytes | str | PathLike[str]
    units: str = "environment"
    tensors: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Sb3:
    """A model of stable-baselines3 or sb3-contrib with the policy `MlpPolicy` or `MlpLstmPolicy`, which then runs natively.

    Attributes:
        model: the bytes, or the path, of the file that its `save` wrote.
    """

    model: bytes | str | PathLike[str]


@dataclass
class Weights:
    """Weights of one of the program's own architectures, which then runs natively: see docs/policies/read_policy.py.

    Attributes:
        tensors: arrays by name. A weight is `[inputs, outputs]`.
        architecture: the description of the network, as `architecture` of a policy's file.
        observation_normalisation: `offset`, `scale` and `clip`, or `None`.
    """

    tensors: Mapping[str, Any]
    architecture: Mapping[str, Any]
    observation_normalisation: Mapping[str, Any] | None = None
