"""The code in the pages of docs/, run as it stands there."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pytest

import runner
from runner import _program

ROOT = Path(__file__).resolve().parents[3]


def blocks(page, language):
    """The blocks of a page in a language, in order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(rf"^([ ]*)```{language}\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def block(page, language, part):
    """The only block of a page with this part."""
    (found,) = (block for block in blocks(page, language) if part in block)
    return found


@pytest.fixture
def at(monkeypatch):
    """Goes to a directory, where the command `runner` is found and `env` is this interpreter's environment."""

    def go(directory):
        monkeypatch.chdir(directory)
        monkeypatch.setenv("PATH", f"{Path(_program.program()).parent}{os.pathsep}{os.environ['PATH']}")
        (directory / ".runner").mkdir(exist_ok=True)
        if not (directory / "env").exists():
            (directory / "env").symlink_to(sys.prefix)
        return directory

    return go


def shell(code):
    """Runs the commands of a block, each of which has to succeed."""
    subprocess.run(["sh", "-e"], input=code, check=True, encoding="utf-8")


def pipeline(stages):
    """Writes a pipeline of these stages, and returns its path."""
    Path("page.yaml").write_text(f"version: 1\nname: page\n{stages}", encoding="utf-8")
    return "page.yaml"


def stages(*parts):
    """One mapping of the stages in these texts, of which some begin with `stages:`."""
    entries = (part.removeprefix("stages:\n") if part.startswith("stages:\n") else textwrap.indent(part, "  ") for part in parts)
    return "stages:\n" + "".join(entries)


def test_reading_artifacts(run, directory, at):
    at(directory)
    commands = block("reading-artifacts.md", "sh", "market.chain chain/").replace("latest/", f"{run.id}/")
    shell(commands)
    subprocess.run([_program.program(), "export", f"{run.id}/train.metrics", "metrics"], check=True)
    names = {}
    for code in blocks("reading-artifacts.md", "python"):
        exec(code.replace("latest/", f"{run.id}/"), names)
    assert 0 < len(names["puts"]) < len(names["chain"])
    assert names["returns"] and names["returns"][-1][0] > 0
    assert names["bars"].num_rows == run["market.bars"].meta["rows"]
    shell(block("reading-artifacts.md", "sh", "results/").replace("latest ", f"{run.id} "))
    metrics = json.loads(Path("results/metrics.json").read_text(encoding="utf-8"))
    assert metrics["evaluate"]["episodes"] == 6
    (curve, *_) = Path("results/plots/train").rglob("*.tsv")
    name = curve.relative_to("results/plots/train").with_suffix("").as_posix().rsplit("/")[-1]
    assert curve.read_text(encoding="utf-8").splitlines()[0] == f"step\t{name}"


@pytest.fixture(scope="module")
def main_job(tmp_path_factory):
    """The directory of a run of the shipped pipeline, by the first block of docs/python.md, and the names that it leaves."""
    directory = tmp_path_factory.mktemp("page")
    (directory / ".runner").mkdir()
    shutil.copytree(ROOT / "pipelines", directory / "pipelines")
    names, before = {}, os.getcwd()
    os.chdir(directory)
    try:
        exec(block("python.md", "python", "runner.exec("), names)
    finally:
        os.chdir(before)
    return directory, names


def test_the_first_block(main_job):
    _, names = main_job
    assert names["run"].status == "done"
    assert names["envs"].num_envs == 256
    assert names["policy"].kind == "train/recurrent_ppo"


def test_decisions_in_python(main_job, at):
    at(main_job[0])
    names = {"runner": runner}
    exec(block("python.md", "python", "policy.predict(obs, state, starts"), names)
    assert names["starts"][0]


def test_training_with_masks(main_job, at):
    pytest.importorskip("sb3_contrib")
    at(main_job[0])
    code = block("python.md", "python", "MaskablePPO")
    assert "1_000_000" in code
    exec(code.replace("1_000_000", "8_192"), {})


def test_a_function_as_a_stage(tmp_path, at):
    at(tmp_path)
    (tmp_path / "my_stages.py").write_text(block("python.md", "python", "def make_factors"), encoding="utf-8")
    (tmp_path / "bars.csv").write_text("\n".join(["date,symbol,close", *(f"2024-01-{day:02},A,{50 + day % 7}" for day in range(1, 32))]), encoding="utf-8")
    market = "market: { uses: ingest/bars, with: { path: bars.csv } }\n"
    run = runner.exec(pipeline(stages(block("python.md", "yaml", "call: my_stages:make_factors"), market)), progress=False)
    bars, factors = run["market"].to_pandas(), run["factors"].to_pandas()
    assert list(factors) == ["symbol", "date", "momentum"]
    assert 0 < len(factors) < len(bars)
    assert run.stages["factors"].metrics["data/rows"] > 0


ENVS = """
import csv, pathlib
import gymnasium, numpy

class Sums(gymnasium.Env):
    def __init__(self, size):
        with open(pathlib.Path(__file__).parent / "prices.csv", newline="") as file:
            self.prices = [float(row["close"]) for row in csv.DictReader(file)]
        self.observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (size,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(size)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.np_random.normal(size=self.observation_space.shape).astype(numpy.float32), {}

    def step(self, action):
        self.at += 1
        obs = self.np_random.normal(size=self.observation_space.shape).astype(numpy.float32)
        return obs, self.prices[int(action)], self.at == 10, False, {}

def make_env(size):
    return Sums(size)
"""


def test_environments_of_ones_own(tmp_path, at):
    at(tmp_path)
    (tmp_path / "my_envs.py").write_text(ENVS, encoding="utf-8")
    (tmp_path / "prices.csv").write_text("close\n" + "\n".join(str(i) for i in range(8)) + "\n", encoding="utf-8")
    run = runner.exec(pipeline(block("python.md", "yaml", "call: my_envs:make_env")), progress=False)
    for stage, width, choices in (("env", 4, 2), ("own", 8, 8)):
        envs = runner.load_env(run[stage], 3)
        obs, _ = envs.reset(seed=1)
        assert obs.shape == (3, width)
        assert envs.single_action_space.n == choices
        obs, rewards, *_ = envs.step(numpy.ones(3, int))
        assert (rewards == 1).all()


def test_policies_of_stable_baselines3(run, tmp_path, at):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO

    from runner.stable_baselines3 import VecEnv

    at(tmp_path)
    PPO("MlpPolicy", VecEnv(run["cartpole"], 4), n_steps=32, batch_size=64, device="cpu").learn(128).save("model")
    env = "env: { uses: env/classic, with: { id: CartPole-v1 } }\n"
    imported = runner.exec(pipeline(stages(env, block("python.md", "yaml", "train/import"))), progress=False)
    assert imported.metrics["evaluate"]["episodes"] > 0


def test_reading_policies(run, directory, at, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    at(tmp_path)
    reader = block("reading-policies.md", "python", "class Policy:")
    commands = block("reading-policies.md", "sh", "--format safetensors").replace("latest/", f"{run.id}/").replace("runner ", f"runner -C {directory} ")
    commands = re.sub(r"policy\.(safetensors|npz|onnx)", lambda name: str(tmp_path / name[0]), commands)
    for stage in ("train", "recurrent", "swing"):
        shell(commands.replace("/train ", f"/{stage} "))
        policy = runner.load_policy(run[f"{stage}.policy"])
        names = {}
        exec(reader, names)
        exec(block("reading-policies.md", "python", "InferenceSession"), names)
        session, state = names["session"], names["state"]
        taken = {i.name for i in session.get_inputs()}
        state = {name: value for name, value in state.items() if name in taken}
        readers = [names["Policy"](file) for file in ("policy.safetensors", "policy.npz")]
        random, ours = numpy.random.default_rng(1), None
        discrete = stage != "swing"
        for t in range(20):
            obs = random.normal(size=len(policy.observation_names)).astype(numpy.float32)
            mask = numpy.ones(len(policy.action_names), bool)
            if discrete:
                mask[random.integers(0, len(mask))] = False
            action, ours = policy.predict(obs, ours, [t == 0], mask if discrete else None)
            inputs = {**state, "observation": obs[None]}
            inputs |= {"action_mask": mask[None]} if "action_mask" in taken else {}
            outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs)))
            state = {name: outputs.get(f"next.{name}", numpy.zeros(1, "f4")) for name in state}
            read = [reader.outputs(obs, t == 0) for reader in readers]
            assert (read[0] == read[1]).all()
            if discrete:
                log = readers[0].log_probabilities(read[0], mask)
                numpy.testing.assert_allclose(log[mask], outputs["log_probabilities"][0][mask], rtol=1e-5, atol=1e-5)
                assert log.argmax() == outputs["action"][0] == action
            else:
                numpy.testing.assert_allclose(outputs["action"][0], action, rtol=1e-5, atol=1e-5)
                numpy.testing.assert_allclose(read[0], action, rtol=1e-5, atol=1e-5)


def write_rows(closes=None):
    """Rows of three symbols on business days of 2010 to 2020, or of one symbol with these closes."""
    days = numpy.arange("2010-01-04", "2021-01-01", dtype="datetime64[D]")
    days = days[numpy.is_busday(days)]
    random = numpy.random.default_rng(0)
    Path("data").mkdir(exist_ok=True)
    for symbol in ("AAA", "BBB", "CCC") if closes is None else ("AAA",):
        count = len(days) if closes is None else len(closes)
        close = 50 * numpy.exp(numpy.cumsum(0.01 * random.normal(size=count))) if closes is None else closes
        rows = (f"{day},{symbol},{price},{random.normal()},{random.normal()}" for day, price in zip(days, close))
        Path(f"data/{symbol}.csv").write_text("date,symbol,close,momentum,value\n" + "\n".join(rows) + "\n", encoding="utf-8")


def test_an_environment_from_a_table(tmp_path, at):
    at(tmp_path)
    write_rows()
    short = {"train.with.total_timesteps": 4096}
    run = runner.exec(pipeline(block("table.md", "yaml", "uses: env/table")), set=short, progress=False)
    envs = runner.load_env(run["env"])
    assert envs.observation_names == ["momentum", "value", "account.position", "account.net_asset_value", "account.drawdown"]
    assert envs.action_names == ["-1", "0", "1"]
    assert {"total_return", "baseline/cash/total_return"} <= set(run.metrics["evaluate"])


def test_the_step_by_hand(tmp_path, at):
    """The step that docs/table.md computes by hand."""
    at(tmp_path)
    write_rows([100.0, 110.0] * 20)
    hand = """
rows: { uses: ingest/table, with: { path: data/*.csv } }
env:
  uses: env/table
  needs: { table: rows }
  with: { price: close, observe: [momentum], actions: { kind: continuous }, costs: { basis_points: 100 }, reward: paid, episode_length: 2, test_fraction: 0.3, purge: 0, embargo: 0 }
"""
    env = runner.load_env(runner.exec(pipeline(stages(hand.lstrip())), progress=False)["env"], 64)
    env.reset(seed=1)
    obs, rewards, *_ = env.step(numpy.full((64, 1), 0.5, numpy.float32))
    # Those that begin at 100.
    up = numpy.isclose(rewards, 0.045, atol=1e-6)
    assert 10 < up.sum() < 54
    position = obs[:, env.observation_names.index("account.position")]
    numpy.testing.assert_allclose(position[up], 0.55 / 1.045, rtol=1e-5)
    text = (ROOT / "docs" / "table.md").read_text(encoding="utf-8")
    assert "0.5 x 0.1 - 0.01 x 0.5 = 0.045; the position is then 0.55 / 1.045 = 0.526" in text
