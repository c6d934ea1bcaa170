"""The code in docs/reading-artifacts.md."""

import os
import re
import subprocess
from pathlib import Path

from runner import _program

DOC = Path(__file__).resolve().parents[3] / "docs" / "reading-artifacts.md"


def test_reading_artifacts(run, directory, monkeypatch):
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PATH", f"{Path(_program.program()).parent}{os.pathsep}{os.environ['PATH']}")
    for name, to in (("market.chain", "chain"), ("train.metrics", "metrics")):
        subprocess.run([_program.program(), "export", f"{run.id}/{name}", to], check=True)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL):
        exec(block.replace("latest/", f"{run.id}/"), names)
    assert 0 < len(names["puts"]) < len(names["chain"])
    assert names["returns"] and names["returns"][-1][0] > 0
    assert names["bars"].num_rows == run["market.bars"].meta["rows"]
