"""The code in the documentation is run as it stands there: names of runs, interpreters and budgets are all that is exchanged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import runner
from runner import _program

ROOT = Path(__file__).resolve().parents[3]


def blocks(document, language):
    """The code blocks of a document, in order."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / document).read_text(encoding="utf-8"), re.DOTALL)


def block(document, language, text):
    """The one block that has the text."""
    (found,) = (block for block in blocks(document, language) if text in block)
    return found


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """The directory in which the first block of guides/python.md has run the main job, small, and what the block defined."""
    directory = tmp_path_factory.mktemp("docs")
    (directory / ".runner").mkdir()
    (directory / "pipelines").symlink_to(ROOT / "pipelines")
    names, before = {}, Path.cwd()
    os.chdir(directory)
    try:
        exec(block("guides/python.md", "python", "runner.exec("), names)
    finally:
        os.chdir(before)
    return directory, names


def test_reading_artifacts(run, directory, monkeypatch):
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PATH", f"{Path(_program.program()).parent}{os.pathsep}{os.environ['PATH']}")
    for name, to in (("market.chain", "chain"), ("train.metrics", "metrics")):
        subprocess.run([_program.program(), "export", f"{run.id}/{name}", to], check=True)
    names = {}
    for code in blocks("guides/read-artifacts.md", "python"):
        exec(code.replace("latest/", f"{run.id}/"), names)
    assert 0 < len(names["puts"]) < len(names["chain"])
    assert names["returns"] and names["returns"][-1][0] > 0
    assert names["bars"].num_rows == run["market.bars"].meta["rows"]


def test_exec_and_load(options):
    _, names = options
    run = names["run"]
    assert run.status == "done"
    assert run.stages["train"].config["learning_rate"] == 1e-4
    assert names["envs"].num_envs == 256


def test_policies(options, monkeypatch):
    directory, names = options
    monkeypatch.chdir(directory)
    names = dict(names)
    exec(block("guides/python.md", "python", "policy.predict("), names)
    assert names["starts"][0]


def test_maskable_ppo(options, monkeypatch):
    pytest.importorskip("sb3_contrib")
    directory, _ = options
    monkeypatch.chdir(directory)
    exec(block("guides/python.md", "python", "MaskablePPO").replace("1_000_000", "1_000"), {})


def pipeline(document, text, directory, stages):
    """A YAML block of stages as a pipeline beside others, with this interpreter in place of `./env`."""
    code = block(document, "yaml", text).replace("./env", sys.prefix)
    first, _, rest = code.partition("\n")
    assert first == "stages:"
    file = directory / "pipeline.yaml"
    file.write_text(f"version: 1\nname: docs\nstages:\n{stages}\n{rest}", encoding="utf-8")
    (directory / ".runner").mkdir()
    return file


def markets():
    """Bars of many symbols over several partitions: simulated, and real ones where there are."""
    yield {"uses": "ingest/simulated_panel", "with": {"stocks": 7, "days": 600}}
    shared = os.environ.get("RUNNER_TEST_DATA")
    if shared:
        yield {"uses": "ingest/bars", "with": {"path": f"{shared}/data/equities/dow36_daily_2007_2024.parquet"}}


@pytest.mark.parametrize("market", markets(), ids=lambda market: market["uses"])
def test_stages(tmp_path, market):
    (tmp_path / "my_stages.py").write_text(block("guides/python-stages.md", "python", "# my_stages.py"), encoding="utf-8")
    file = pipeline("guides/python-stages.md", "call: my_stages:make_factors", tmp_path, f"  market: {json.dumps(market)}")
    run = runner.exec(file, directory=tmp_path, progress=False)
    factors = run["factors.factors"].to_pandas().astype({"symbol": str})
    bars = run["market.bars"].to_pandas().astype({"symbol": str}).sort_values(["symbol", "date"])
    assert bars["symbol"].nunique() > 5
    # Over all rows of each symbol, whatever the partitions.
    bars["expected"] = bars["close"] / bars.groupby("symbol")["close"].shift(20) - 1.0
    both = bars.dropna(subset=["expected"]).merge(factors, on=["symbol", "date"], how="outer", indicator=True)
    assert (both["_merge"] == "both").all()
    assert ((both["expected"] - both["momentum"]).abs() < 1e-12).all()
    assert run.metrics["factors"]["data/rows"] > 0


MY_ENVS = """
import csv

import gymnasium
import numpy

PRICES = [float(row[0]) for row in csv.reader(open("prices.csv"))]


class MyEnv(gymnasium.Env):
    def __init__(self, size):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (size,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2, start=-1)

    def observe(self):
        return self.np_random.uniform(-1.0, 1.0, self.observation_space.shape).astype(numpy.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = len(PRICES)
        return self.observe(), {}

    def step(self, action):
        self.left -= 1
        return self.observe(), PRICES[self.left] * float(action), self.left == 0, False, {}


def make_env(size):
    return MyEnv(size)
"""


def test_environments_of_ones_own(tmp_path):
    (tmp_path / "my_envs.py").write_text(MY_ENVS, encoding="utf-8")
    (tmp_path / "prices.csv").write_text("1.0\n2.0\n3.0\n", encoding="utf-8")
    train = {"total_timesteps": 256, "n_envs": 4, "n_steps": 16, "batch_size": 32, "n_epochs": 1}
    stages = "".join(f"  train_{name}: {{ uses: train/ppo, needs: {{ env: {name} }}, with: {train} }}\n" for name in ("env", "own"))
    file = pipeline("guides/python.md", "id: CartPole-v1", tmp_path, stages)
    run = runner.exec(file, directory=tmp_path, progress=False)
    assert {stage.status for stage in run.stages.values()} == {"ran"}
    envs = runner.load_env(run["own"], 3)
    obs, _ = envs.reset(seed=1)
    assert obs.shape == (3, 8)
    # Choices count from 0, and those of the program from its space's `start`.
    policy = runner.load_policy(run["train_own.policy"])
    actions, _ = policy.predict(obs, deterministic=False)
    assert policy.for_program(actions).tolist() == [choice - 1 for choice in actions]


TRAIN = """

def train(ctx, env, total_timesteps):
    from runner.trained import Saved

    np.save("weights.npy", np.random.default_rng(ctx.seed).normal(size=(4, 2)))
    return Saved("my_agent:load", {"weights.npy": "weights.npy"})
"""


def test_policies_of_ones_own(tmp_path):
    (tmp_path / "my_agent.py").write_text(block("guides/python.md", "python", "def load(path, spec)") + TRAIN, encoding="utf-8")
    (tmp_path / ".runner").mkdir()
    train = {"call": "my_agent:train", "python": sys.executable, "total_timesteps": 64, "seed": 1}
    stages = {
        "env": {"uses": "env/classic", "with": {"id": "CartPole-v1"}},
        "train": {"uses": "train/python", "needs": {"env": "env"}, "with": train},
        "evaluate": {"uses": "evaluate/backtest", "needs": {"env": "env", "policy": "train"}, "with": {"episodes": 5}},
    }
    run = runner.exec({"version": 1, "name": "own", "stages": stages}, directory=tmp_path, progress=False)
    policy = runner.load_policy(run["train.policy"])
    assert (policy.form, repr(policy)) == ("python", "<Policy of train/python for CartPole-v1>")
    weights = numpy.load(run["train.policy"].files["weights/weights.npy"])
    obs = numpy.random.default_rng(2).normal(size=(64, 4)).astype(numpy.float32)
    actions, _ = policy.predict(obs)
    assert actions.tolist() == (obs @ weights).argmax(axis=1).tolist()
    with pytest.raises(runner.Error, match="shape"):
        policy.predict(obs[:, :3])
