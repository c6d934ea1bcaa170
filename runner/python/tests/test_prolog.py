"""The environment in Prolog of docs/prolog, by itself."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

DIRECTORY = Path(__file__).parents[3] / "docs/prolog"


@pytest.fixture
def env(monkeypatch):
    if shutil.which("swipl") is None:
        pytest.skip("SWI-Prolog is not installed")
    monkeypatch.syspath_prepend(DIRECTORY)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import prolog_env

    return prolog_env.make()


def test_successors_are_facts_and_rules(env):
    # The first query is parent(ann, bea), true and hidden: nothing proves it.
    env.observed(env.prolog.ask(f"start({env.name}, 0)"))
    assert env.actions == 1
    # The eleventh is grandparent(bob, emil): by its rule both parents are left, the first to be found.
    observation, reward, end = env.observed(env.prolog.ask(f"start({env.name}, 10)"))
    assert (env.actions, reward, end) == (2, 0.0, 0)
    assert [int((row[:, 0] > 0).sum()) for row in observation[:3]] == [1, 2, 1]
    env.step(0)
    # bob has two children; with the wrong one emil's parent is open, with the right one the proof is done and the only action.
    assert env.actions == 1
    _, reward, terminated, truncated, _ = env.step(0)
    assert (reward, terminated, truncated) == (1.0, True, False)


def test_a_seed_decides_an_episode(env):
    def play(seed):
        random, seen = np.random.default_rng(seed), []
        observation, _ = env.reset(seed=seed)
        end = False
        while not end:
            observation, reward, terminated, truncated, _ = env.step(random.integers(env.action_masks().sum()))
            seen.append((observation.tobytes(), reward))
            end = terminated or truncated
        return seen

    played = [play(seed) for seed in range(100)]
    assert played == [play(seed) for seed in range(100)]
    assert {episode[-1][1] for episode in played} == {1.0, -1.0}
