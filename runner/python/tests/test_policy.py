"""Policies decide as the backtest does."""

import numpy
import pytest
from conftest import EPISODES

import runner


def episodes(envs, policy, deterministic):
    """The return and the length of the first episode of each environment, as `evaluate/backtest` plays them."""
    b = envs.num_envs
    obs, _ = envs.reset()
    state, starts = None, numpy.ones(b, bool)
    returns, lengths, first = numpy.zeros(b), numpy.zeros(b), numpy.ones(b, bool)
    while first.any():
        actions, state = policy.predict(obs, state, starts, envs.action_masks(), deterministic)
        obs, rewards, terminated, truncated, _ = envs.step(actions)
        returns[first] += rewards[first]
        lengths[first] += 1
        starts = terminated | truncated
        first &= ~starts
    return returns, lengths


@pytest.mark.parametrize(
    ("env", "train", "evaluate", "deterministic"),
    [("cartpole", "train", "evaluate", True), ("pendulum", "swing", "evaluate_swing", False)],
)
def test_episodes_of_the_backtest(run, env, train, evaluate, deterministic):
    policy = runner.load_policy(run[f"{train}.policy"])
    policy.seed(5)
    envs = runner.load_env(run[f"{env}.env"], EPISODES, seed=5, split="test", policy=policy)
    returns, lengths = episodes(envs, policy, deterministic)
    expected = run[f"{evaluate}.trajectory"].to_arrow()
    assert returns.tolist() == expected["episodic_return"].to_pylist()
    assert lengths.tolist() == expected["length"].to_pylist()


def test_decisions_of_the_backtest(run):
    """A recurrent policy with masks: the same action on each day, and the same profit."""
    policy = runner.load_policy(run["recurrent.policy"])
    rows = [
        row
        for row in run["evaluate_options.trajectory"].to_arrow().to_pylist()
        if row["strategy"] == "policy" and row["path"] == 0.0
    ]
    envs = runner.load_env(run["options.env"], 1, split="test", policy=policy)
    obs, _ = envs.reset()
    state, starts, taken, ended = None, [True], [], False
    while not ended:
        actions, state = policy.predict(obs, state, starts, envs.action_masks())
        taken.append(envs.action_names[actions[0]])
        obs, _, terminated, truncated, _ = envs.step(actions)
        ended = terminated[0] or truncated[0]
        starts = [ended]
    expected = [row["action"] for row in rows][: len(taken)]
    assert len(taken) > 20
    assert taken == expected


def test_a_state_belongs_to_the_caller(run):
    policy = runner.load_policy(run["recurrent.policy"])
    d = len(policy.observation_names)
    obs = numpy.random.default_rng(0).normal(size=(3, d)).astype(numpy.float32)
    _, first = policy.predict(obs)
    kept = first.copy()
    _, second = policy.predict(obs, first)
    assert (first == kept).all()
    assert (second != first).any()
    # Another batch in between changes nothing, and rows are independent.
    policy.predict(obs[0])
    _, alone = policy.predict(obs[1], first[1:2])
    assert (alone == second[1:2]).all()
    _, restarted = policy.predict(obs, second, [True] * 3)
    assert (restarted == first).all()


def test_masks(run):
    policy = runner.load_policy(run["recurrent.policy"])
    d, m = len(policy.observation_names), len(policy.action_names)
    for choice in range(m):
        mask = numpy.arange(m) == choice
        action, _ = policy.predict(numpy.zeros(d), action_masks=mask, deterministic=False)
        assert action == choice


def test_a_file(run):
    artifact = run["train.policy"]
    policy = runner.load_policy(artifact.files["policy.safetensors"])
    assert repr(policy) == "<Policy of train/ppo for CartPole-v1>"
    action, state = policy.predict([0.0, 0.0, 0.1, 0.0])
    assert action in (0, 1)
    assert state.shape == (1, 0)


def test_errors(run, tmp_path):
    policy = runner.load_policy(run["train.policy"])
    with pytest.raises(runner.Error, match=r"shape \(1, 3\), not \(B, 4\)"):
        policy.predict(numpy.zeros(3))
    with pytest.raises(runner.Error, match="allows no choice of component 0"):
        policy.predict(numpy.zeros(4), action_masks=[False, False])
    with pytest.raises(runner.Error, match="the state has the shape"):
        policy.predict(numpy.zeros(4), state=numpy.zeros((1, 7)))
    with pytest.raises(runner.Error, match="not a policy"):
        runner.load_policy(run["cartpole.env"])
    (tmp_path / "policy.safetensors").write_bytes(b"nonsense")
    with pytest.raises(runner.Error, match="cannot read the policy"):
        runner.load_policy(tmp_path / "policy.safetensors")
