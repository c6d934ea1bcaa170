"""The package: import time, the program, types, and the lock file."""

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import runner
from runner import _program

ROOT = Path(__file__).resolve().parents[3]


def test_the_command_is_of_this_version():
    printed = subprocess.run([_program.program(), "--version"], capture_output=True, check=True, text=True).stdout
    assert printed.split() == ["runner", runner.__version__]
    assert metadata.version("runner") == runner.__version__


def test_import_is_light():
    code = "import runner, sys; print([name for name in ('numpy', 'gymnasium', 'pyarrow') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_ids_are_registered_where_gymnasium_is_loaded():
    code = "import gymnasium, runner; print('runner/Options-v0' in gymnasium.registry)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "True"


def test_import_takes_few_milliseconds():
    def cpu(code):
        """The least of the processor times of five interpreters, in seconds: other work on the machine costs this one none."""
        before = [os.times()]
        for _ in range(5):
            subprocess.run([sys.executable, "-c", code], check=True)
            before.append(os.times())
        spent = [time.children_user + time.children_system for time in before]
        return min(after - before for before, after in zip(spent, spent[1:]))

    assert cpu("import runner") - cpu("pass") < 0.05


def test_typed():
    package = Path(runner.__file__).parent
    assert (package / "py.typed").is_file()
    assert (package / "_native.pyi").is_file()


def test_documented():
    for name in runner.__all__:
        assert getattr(runner, name).__doc__, name


def test_lock_files_agree():
    """Crates of the native module are of the versions of the program's, where both have them."""

    def versions(path):
        packages = {}
        for package in tomllib.loads(path.read_text())["package"]:
            packages.setdefault(package["name"], set()).add(package["version"])
        return packages

    ours, theirs = versions(ROOT / "runner/python/Cargo.lock"), versions(ROOT / "Cargo.lock")
    different = {name: (mine, theirs[name]) for name, mine in ours.items() if not mine <= theirs.get(name, mine)}
    assert different == {}


def test_profiles_agree():
    """Both workspaces compile with the same settings, and so share what they have compiled."""

    def profile(path):
        settings = tomllib.loads((ROOT / path).read_text())["profile"]["release"]
        return settings.pop("package"), settings

    packages = {package["name"] for package in tomllib.loads((ROOT / "runner/python/Cargo.lock").read_text())["package"]}
    (ours, our_profile), (theirs, their_profile) = profile("runner/python/Cargo.toml"), profile("Cargo.toml")
    assert our_profile == their_profile
    assert ours == {name: settings for name, settings in theirs.items() if name in packages}
