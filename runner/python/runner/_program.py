"""The program `runner` that the wheel holds: its place, its documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ._error import Error


@cache
def program() -> str:
    """The path of the program: `RUNNER_PROGRAM`, or the one installed with this package.

    Raises:
        Error: neither exists.
    """
    given = os.environ.get("RUNNER_PROGRAM")
    if given:
        return given
    name = "runner" + (sysconfig.get_config_var("EXE") or "")
    package = Path(__file__).resolve().parent
    # Of the interpreter, of a user's installation, and of `pip install --target DIR`.
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        str(package.parent / "bin"),
        str(Path(sys.executable).parent),
    ]
    for folder in folders:
        path = Path(folder) / name
        if path.is_file():
            return str(path)
    raise Error(
        f"the program `runner` is in none of {', '.join(folders)}",
        "install the package again, or set RUNNER_PROGRAM to the program",
    )


def command(arguments: list[str], directory: str | PathLike[str] | None) -> list[str]:
    """The command line of the program with these arguments."""
    place = [] if directory is None else ["-C", fspath(directory)]
    return [program(), *place, *arguments]


def failure(text: str, code: int) -> Error:
    """The failure that the program printed."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    at = next((i for i, line in enumerate(lines) if line.startswith("error: ")), None)
    if at is None:
        return Error(text.strip() or f"the program ended with exit code {code}", code=code)
    hints = [line.strip().removeprefix("hint: ") for line in lines[at:] if line.strip().startswith("hint: ")]
    rest = [line for line in lines[at:] if not line.strip().startswith("hint: ")]
    message = "\n".join(rest).removeprefix("error: ")
    return Error(message, "\n".join(hints) or None, code)


def document(arguments: list[str], directory: str | PathLike[str] | None = None) -> Any:
    """The JSON document that the program prints.

    Raises:
        Error: the program's own failure.
    """
    done = subprocess.run(
        command([*arguments, "--json"], directory), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8"
    )
    if done.returncode != 0:
        raise failure(done.stderr, done.returncode)
    return json.loads(done.stdout)


def home(directory: str | PathLike[str] | None = None) -> Path:
    """The directory of the store and the runs: `RUNNER_HOME`, or `.runner` of the nearest directory upwards that has one or is the root of a
    repository, as the program looks for it."""
    start = Path.cwd() if directory is None else Path(directory).resolve()
    given = os.environ.get("RUNNER_HOME")
    if given:
        return start / given
    found = (at for at in (start, *start.parents) if (at / ".runner").is_dir() or (at / ".git").exists())
    return next(found, start) / ".runner"


def blob(home: Path, digest: str) -> Path:
    """The file of a blob.

    Raises:
        Error: the store does not have it.
    """
    path = home / "blobs" / digest[:2] / digest[2:]
    if not path.is_file():
        raise Error(f"the store has no blob `{digest}`: {path} is missing", "run its stage again, or `runner cache pull`")
    return path
