"""Runs, environments and policies of `runner`.

`run("latest")` reads a run, `exec("pipeline.yaml")` makes one, `search("pipeline.yaml", over=…, objective=…)` searches settings, `paper("desk")` reads a paper account, `load_env("latest/env")` opens an environment for Gymnasium and
`load_policy("latest/train")` a trained policy; `policy_act` decides on today's files; `stage` declares a function that is one, `kind` a stage kind of a package. Importing this module loads neither NumPy nor Gymnasium, and
of its own modules those of runs when they are first used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

from ._error import Error
from ._stage import stage

if TYPE_CHECKING:
    from ._kind import kind
    from ._paper import Account, Ledger, paper
    from ._runs import Artifact, Comparison, Run, Stage, compare, exec, run, runs
    from ._search import Search, search
    from .gymnasium import VectorEnv
    from .policy import Policy

__all__ = ["Account", "Artifact", "Comparison", "Error", "Ledger", "Run", "Search", "Stage", "compare", "exec", "kind", "load_env", "load_policy", "paper", "policy_act", "run", "runs", "search", "stage"]
__version__ = "0.1.0"

# What they import takes ten times as long as the rest: a stage's function that imports `stage` alone does without.
_LATER = {"kind": "._kind", **dict.fromkeys(("Account", "Ledger", "paper"), "._paper"), **dict.fromkeys(("Artifact", "Comparison", "Run", "Stage", "compare", "exec", "run", "runs"), "._runs"), **dict.fromkeys(("Search", "search"), "._search")}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def load_env(
    name: str | Artifact,
    num_envs: int = 1,
    *,
    seed: int = 0,
    split: Literal["train", "validation", "test"] = "train",
    policy: Policy | None = None,
    copy: bool = True,
    directory: str | PathLike[str] | None = None,
) -> VectorEnv:
    """Opens the environment `RUN/STAGE`, `RUN/STAGE.OUTPUT` or a digest as a batch of `num_envs` for Gymnasium.

    Args:
        name: the environment's artifact, such as `latest/env`.
        num_envs: environments stepped together; environment i depends on (seed, i) alone.
        seed: of the episodes that are drawn.
        split: the dates that it runs over. With `validation` and `test`, environment i runs evaluation episode i, in turn.
        policy: shows observations in the normalisation of the environment that this policy was trained on.
        copy: if false, `reset` and `step` return views of the buffers that the next step overwrites.
        directory: where the store is looked for, if not from the current one upwards.

    Raises:
        Error: there is no such artifact, it is no environment, or it has no data of that split.
    """
    from .gymnasium import VectorEnv

    return VectorEnv(name, num_envs, seed=seed, split=split, policy=policy, copy=copy, directory=directory)


def load_policy(name: str | PathLike[str] | Artifact, *, directory: str | PathLike[str] | None = None) -> Policy:
    """Loads a policy of any form: `RUN/STAGE`, `RUN/STAGE.OUTPUT`, a digest, or the path of a `policy.safetensors`.

    Raises:
        Error: there is no such policy, or it cannot be read.
    """
    from .policy import Policy

    return Policy(name, directory=directory)


def policy_act(
    name: str,
    data: str | PathLike[str] | Sequence[str] | Mapping[str, str | PathLike[str]],
    *,
    replace: bool = False,
    allow_gap: bool = False,
    as_is: bool = False,
    positions: str | PathLike[str] = "none",
    cash: float | None = None,
    directory: str | PathLike[str] | None = None,
    **options: str | int,
) -> dict[str, Any]:
    """Today's decision of the policy `RUN/STAGE` from today's files: the document that `runner policy act --json` prints.

    Args:
        name: the policy, such as `latest/train`.
        data: a file, several, or files by the stage that reads them. Relative paths are relative to `directory`.
        replace: the files stand in place of the stages' own ones, not after them.
        allow_gap: decide though days are missing between what the stages read and the files.
        as_is: the orders of a document at `positions` are not filled.
        positions: a file, `none`, or `played`; the document of an earlier decision has its orders filled.
        cash: the cash that is held.
        directory: where the command runs, if not in the current one.
        options: `at`, `since` (`--from`), `world`, `sample` and `max_age`, as the command's.

    Raises:
        Error: the files, the policy's age or an argument do not allow a decision.
    """
    from . import _program

    if isinstance(data, Mapping):
        files = [f"{stage}={fspath(file)}" for stage, file in data.items()]
    else:
        files = [data] if isinstance(data, str) else [fspath(data)] if isinstance(data, PathLike) else list(data)
    arguments = ["policy", "act", name, "--positions", fspath(positions)]
    arguments += [option for option, is_set in (("--replace", replace), ("--allow-gap", allow_gap), ("--as-is", as_is)) if is_set]
    arguments += [part for file in files for part in ("--data", fspath(file))]
    if cash is not None:
        arguments += ["--cash", str(cash)]
    for option, value in options.items():
        flag = {"since": "from"}.get(option, option.replace("_", "-"))
        arguments += [f"--{flag}", str(value)]
    return _program.document(arguments, directory)


# Its ids are there for `gymnasium.make_vec` without another import, where Gymnasium is loaded already.
if "gymnasium" in sys.modules:
    import_module(".gymnasium", __name__)
