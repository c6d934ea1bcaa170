"""Today's decision of a policy from today's files."""

from datetime import date, timedelta

import pytest

import runner


def rows(first: int, last: int) -> str:
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(first, last)]
    lines = [f"{day},{50 + (i * 7) % 11},{(i * 5) % 13}" for i, day in enumerate(days, first)]
    return "\n".join(["date,close,signal", *lines]) + "\n"


@pytest.fixture(scope="module")
def acting(tmp_path_factory):
    directory = tmp_path_factory.mktemp("acting")
    (directory / ".runner").mkdir()
    (directory / "rows.csv").write_text(rows(0, 100))
    (directory / "today.csv").write_text(rows(100, 101))
    pipeline = {
        "version": 1,
        "name": "acting",
        "stages": {
            "rows": {"uses": "ingest/table", "with": {"path": "rows.csv"}},
            "env": {"uses": "env/table", "needs": {"table": "rows"}, "with": {"price": "close", "observe": ["signal"], "episode_length": 20}},
            "train": {
                "uses": "train/ppo",
                "needs": {"env": "env"},
                "with": {"total_timesteps": 256, "n_envs": 4, "n_steps": 32, "batch_size": 64},
            },
        },
    }
    runner.exec(pipeline, directory=directory, progress=False)
    return directory


def test_a_day_that_follows(acting):
    decision = runner.policy_act("latest/train", "today.csv", directory=acting)
    assert decision["date"] == "2024-04-10"
    assert sum(choice["probability"] for choice in decision["choices"]) == pytest.approx(1)
    by_stage = runner.policy_act("latest/train", {"rows": acting / "today.csv"}, directory=acting, sample=3)
    assert by_stage["choices"] == decision["choices"] and by_stage["drawn"] is not None


def test_refusals(acting):
    with pytest.raises(runner.Error, match="too old") as refused:
        runner.policy_act("latest/train", "today.csv", directory=acting, max_age="1d")
    assert refused.value.code == 1
    with pytest.raises(runner.Error, match="no file") as wrong:
        runner.policy_act("latest/train", ["nothing.csv"], directory=acting)
    assert wrong.value.code == 2
