"""The build backend of the wheel: maturin's, after the program itself is built into its scripts.

Cargo builds either a library for Python or a program; the wheel holds both, and the program stays one without Python, whose workers start in
milliseconds. Both are built in one folder, so that what they depend on is compiled once.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (the hooks of the interface that stay maturin's)
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "data" / "scripts"
# The hooks for metadata refuse a missing folder.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_program():
    """Builds the program `runner` and copies it to the wheel's scripts."""
    os.environ.setdefault("CARGO_TARGET_DIR", str(ROOT / "target"))
    # As the README's command builds it, so that a clone that has it has nothing to compile.
    build = ["cargo", "build", "--release", "--locked", "--message-format", "json-render-diagnostics"]
    messages = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    artifacts = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    programs = [artifact["executable"] for artifact in artifacts if artifact.get("executable")]
    (program,) = (path for path in programs if Path(path).stem == "runner")
    shutil.copy2(program, SCRIPTS)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("the wheel is built from a clone: `pip install .`, or `pip wheel .`")
