"""The driver of the executor of `kind: ray`, with a shell script in place of the program."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner import ray as driver

# Answers as `worker --job -` does: with lines, until it is told to stop.
PROGRAM = """#!/bin/sh
read job
echo "$1 $2 $3 $job"
case "$job" in
  endless) read line; echo "$line" > "$0.stopped";;
  failing) echo why >&2; exit 3;;
esac
"""

SUBMISSION = {"name": "runner test", "cpus": 1, "gpus": 0, "memory": None, "excluded": [], "grace": 10}


def test_a_directory_of_another_user_is_refused(tmp_path):
    assert driver.own_directory(str(tmp_path / "a" / "b")) == str(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in ("open", "link"):
        with pytest.raises(driver.Unusable, match=name):
            driver.own_directory(str(tmp_path / name))


def test_errors_of_ray_have_names():
    class Base(Exception):
        pass

    names = ["TaskCancelledError", "OutOfMemoryError", "NodeDiedError", "WorkerCrashedError", "ObjectLostError", "TaskUnschedulableError"]
    ray = SimpleNamespace(exceptions=SimpleNamespace(**{name: type(name, (Base,), {}) for name in names}))
    ends = [driver.end_of(ray, getattr(ray.exceptions, name)("a\nb"))["kind"] for name in names]
    assert ends == ["cancelled", "memory", "node", "worker", "lost", "refused"]
    assert driver.end_of(ray, ValueError("a\nb")) == {"kind": "error", "what": "b"}
    assert driver.end_of(ray, ValueError()) == {"kind": "error", "what": "ValueError"}


class Pipe:
    """A driver with a local Ray."""

    def __init__(self, tmp_path, **settings):
        program = tmp_path / "program"
        program.write_text(PROGRAM)
        program.chmod(0o700)
        self.program = program
        self.process = subprocess.Popen(
            [sys.executable, "-c", Path(driver.__file__).read_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "RAY_ADDRESS": ""},
        )
        self.say({"address": "local", "program": None, "node_dir": str(tmp_path / "node"), "copy": str(program), **settings})
        self.hello = self.hear()

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def end(self, id):
        """The lines of a job, and its end."""
        lines = []
        while True:
            message = self.hear()
            if message["id"] == id:
                lines += message.get("lines", [])
                if "end" in message:
                    return lines, message["end"]

    def until(self, word, id):
        while word not in str(message := self.hear()) or message["id"] != id:
            pass

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def test_jobs(tmp_path):
    pytest.importorskip("ray")
    # A module of the user with Ray's name is not taken for it.
    (tmp_path / "ray.py").write_text("raise SystemExit(7)")
    pipe = Pipe(tmp_path)
    assert pipe.hello["ready"]["nodes"] == 1
    pipe.say({"submit": {**SUBMISSION, "id": 1, "job": "short"}})
    assert pipe.end(1) == (["worker --job - short"], {"kind": "exit", "status": 0, "tail": []})
    pipe.say({"submit": {**SUBMISSION, "id": 2, "job": "failing"}})
    assert pipe.end(2)[1] == {"kind": "exit", "status": 3, "tail": ["why"]}
    # The copy is named by its digest, is whole, and is made once.
    (copy,) = [path for path in (tmp_path / "node" / "programs").iterdir() if path.name != ".lock"]
    assert copy.name == hashlib.sha256(PROGRAM.encode()).hexdigest()
    assert copy.read_text() == PROGRAM and copy.stat().st_mode & 0o777 == 0o500
    # A job that runs is told to stop before it is killed; one that waits ends at once.
    pipe.say({"submit": {**SUBMISSION, "id": 3, "job": "endless"}})
    pipe.say({"submit": {**SUBMISSION, "id": 4, "job": "short", "gpus": 64}})
    pipe.until("no node of Ray's cluster has 1 CPU, 64 GPU", 4)
    pipe.until("endless", 3)
    for id in (3, 4, 99):
        pipe.say({"cancel": {"id": id, "force": False}})
    assert {pipe.hear()["end"]["kind"] for _ in range(2)} == {"cancelled"}
    assert Path(f"{copy}.stopped").read_text() == "stop\n"
    # Nonsense is the end of that job alone.
    pipe.say({"submit": {**SUBMISSION, "id": 5, "job": "short", "cpus": "many"}})
    assert pipe.end(5)[1]["kind"] == "refused"
    # Nothing is left behind.
    pipe.say({"submit": {**SUBMISSION, "id": 6, "job": "endless"}})
    pipe.until("endless", 6)
    assert pipe.close() == 0
    left = [path for path in Path("/proc").glob("[0-9]*/exe") if path.parent.exists() and str(copy) in (path.parent / "cmdline").read_text()]
    assert left == []


def test_a_program_that_cannot_start(tmp_path):
    pytest.importorskip("ray")
    pipe = Pipe(tmp_path, program="/nowhere/runner")
    pipe.say({"submit": {**SUBMISSION, "id": 1, "job": "short"}})
    lines, end = pipe.end(1)
    assert lines == [] and end["kind"] == "unusable" and "/nowhere/runner" in end["what"]
    assert pipe.close() == 0


def test_no_cluster(tmp_path):
    pytest.importorskip("ray")
    pipe = Pipe(tmp_path, address="127.0.0.1:1")
    assert "127.0.0.1:1" in pipe.hello["problem"][0] and "ray start" in pipe.hello["problem"][1]
    assert pipe.close() == 1
