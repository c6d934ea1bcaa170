"""Searches from Python."""

import json

import pytest
from conftest import PIPELINE, PPO

import runner

# Validation data: a search never sees the test range.
STAGES = {
    "env": PIPELINE["stages"]["lookup"],
    "train": {"uses": "train/ppo", "needs": {"env": "env"}, "with": {**PPO, "total_timesteps": 512}},
    "judge": {"uses": "evaluate/backtest", "needs": {"env": "env", "policy": "train"}, "with": {"episodes": 4, "seed": 5, "on": "validation"}},
}
TUNED = {"version": 1, "name": "tuned", "stages": STAGES}
OVER = {"train.with.learning_rate": {"log": [1e-4, 1e-2]}, "train.with.n_epochs": {"choice": [1, 2]}}
OBJECTIVE = {"maximize": "judge.episodic_return"}


@pytest.fixture(scope="module")
def found(directory):
    """A search of four trials."""
    return runner.search(TUNED, over=OVER, objective=OBJECTIVE, trials=4, block={"sampler": "random"}, directory=directory, progress=False)


def test_trials_and_the_best(found):
    assert found.state == "done"
    assert found.objectives == [{"metric": "judge.episodic_return", "maximize": True}]
    assert [trial["trial"] for trial in found.trials] == [0, 1, 2, 3]
    for trial in found.trials:
        assert set(trial["settings"]) == set(OVER)
        assert 1e-4 <= trial["settings"]["train.with.learning_rate"] <= 1e-2
    highest = max(trial["objective"] for trial in found.trials)
    assert found.front[0]["objective"] == highest
    assert found.best == found.front[0]["settings"]
    assert found.run.status == "done"


def test_the_best_settings_are_in_the_cache(found, directory):
    again = runner.exec(TUNED, set=found.best, stages=["train"], directory=directory, progress=False)
    assert again.stages["train"].config["n_epochs"] == found.best["train.with.n_epochs"]
    assert again.stages["env"].status == "cached"


def test_a_file_is_searched_beside_itself(found, directory):
    file = directory / "tuned.yaml"
    file.write_text(json.dumps(TUNED))
    again = runner.search(file, over=OVER, objective=OBJECTIVE, trials=4, block={"sampler": "random"}, directory=directory, progress=False)
    assert [trial["objective"] for trial in again.trials] == [trial["objective"] for trial in found.trials]
    assert not list(directory.glob(".pipeline-*"))
    with pytest.raises(runner.Error, match="needs `over` and `objective`"):
        runner.search(file, trials=4, directory=directory)


def test_frames_and_other_programs(found, tmp_path):
    journal = found.export_optuna(tmp_path / "study.journal")
    assert all(json.loads(line) for line in journal.read_text().splitlines())
    optuna = pytest.importorskip("optuna")
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal)))
    study = optuna.load_study(study_name=None, storage=storage)
    assert [trial.value for trial in study.trials] == pytest.approx([trial["objective"] for trial in found.trials])


def test_a_frame_has_a_column_for_each_setting(found):
    pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert list(frame["train.with.n_epochs"]) == [trial["settings"]["train.with.n_epochs"] for trial in found.trials]


def test_what_is_not_there(directory):
    with pytest.raises(runner.Error, match="there is no search `nothing`"):
        runner.Search("nothing", directory)
