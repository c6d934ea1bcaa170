"""A run of small stages of each kind of environment, and policies."""

import pytest

import runner

PPO = {"seed": 1, "total_timesteps": 1024, "n_envs": 4, "n_steps": 64, "batch_size": 64, "n_epochs": 2}
RECURRENT = {**PPO, "total_timesteps": 256, "policy_kwargs": {"lstm_hidden_size": 16, "net_arch": {"pi": [16], "vf": [16]}}}
EPISODES = 6

PIPELINE = {
    "version": 1,
    "name": "python_tests",
    "stages": {
        "lookup": {"uses": "env/lookup", "with": {"rows": 300, "features": 8, "episode_length": 20}},
        "cartpole": {"uses": "env/classic", "with": {"id": "CartPole-v1"}},
        "pendulum": {"uses": "env/classic", "with": {"id": "Pendulum-v1"}},
        "market": {"uses": "ingest/simulated_market", "with": {"days": 120, "seed": 3}},
        "chain": {
            "uses": "greeks/implied_volatility",
            "needs": {"chain": "market.chain", "rates": "market.rates"},
        },
        "greeks": {"uses": "greeks/analytic", "needs": {"chain": "chain"}},
        "surface": {"uses": "features/options_surface", "needs": {"chain": "chain", "greeks": "greeks"}},
        "options": {
            "uses": "env/options",
            "needs": {"chain": "chain", "greeks": "greeks", "features": "surface", "rates": "market.rates"},
        },
        "hedging": {"uses": "env/hedging", "with": {"paths": 64}},
        "panel": {"uses": "ingest/simulated_panel", "with": {"stocks": 5, "days": 300, "seed": 2}},
        "stocks": {"uses": "env/stocks", "needs": {"bars": "panel.bars"}},
        "momentum": {"uses": "features/technical", "needs": {"bars": "panel.bars"}, "with": {"indicators": [{"log_return": 1}]}},
        "table": {
            "uses": "env/table",
            "needs": {"features": "momentum"},
            "with": {"observe": ["log_return_1"], "reward_column": "log_return_1", "gaps": "drop"},
        },
        "train": {"uses": "train/ppo", "needs": {"env": "cartpole"}, "with": PPO},
        "recurrent": {"uses": "train/recurrent_ppo", "needs": {"env": "options"}, "with": RECURRENT},
        "swing": {"uses": "train/ppo", "needs": {"env": "pendulum"}, "with": {**PPO, "normalize_obs": True}},
        "evaluate": {
            "uses": "evaluate/backtest",
            "needs": {"env": "cartpole", "policy": "train"},
            "with": {"episodes": EPISODES, "seed": 5},
        },
        "evaluate_swing": {
            "uses": "evaluate/backtest",
            "needs": {"env": "pendulum", "policy": "swing"},
            "with": {"episodes": EPISODES, "seed": 5, "deterministic": False},
        },
        "evaluate_options": {
            "uses": "evaluate/backtest",
            "needs": {"env": "options", "policy": "recurrent"},
        },
    },
}


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    """The directory of the run."""
    directory = tmp_path_factory.mktemp("runs")
    (directory / ".runner").mkdir()
    return directory


@pytest.fixture(scope="session")
def run(directory):
    """The run."""
    return runner.exec(PIPELINE, directory=directory, progress=False)
