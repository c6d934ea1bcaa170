"""Reading runs, running pipelines, errors."""

import json
import xml.etree.ElementTree

import pyarrow
import pytest
from conftest import PIPELINE

import runner


def test_stages_and_metrics(run, directory):
    assert run.status == "done"
    assert list(run.stages)[0] == "lookup"
    stage = run.stages["evaluate"]
    assert stage.kind == "evaluate/backtest"
    assert stage.outputs["metrics"] == run["evaluate.metrics"].digest
    assert run.metrics["evaluate"]["episodes"] == 6
    assert runner.run("latest", directory=directory).id == run.id
    assert runner.runs(directory=directory)[0]["id"] == run.id


def test_tables(run):
    trajectory = run["evaluate.trajectory"]
    table = trajectory.to_arrow()
    assert table.column_names == ["episodic_return", "length"]
    assert len(table) == 6
    assert pyarrow.table(trajectory) == table
    # A data set of several partitions.
    chain = run["market.chain"]
    assert len(chain.to_arrow()) > 1000
    assert {row["name"] for row in run["evaluate.metrics"].to_arrow().to_pylist()} >= {"episodes", "episodic_length"}


def test_arrow_files_are_mapped(run):
    artifact = run["lookup"]
    name = next(path for path in artifact.files if path.endswith(".arrow"))
    before = pyarrow.total_allocated_bytes()
    table = artifact.to_arrow(name)
    assert table.nbytes > 1000
    assert pyarrow.total_allocated_bytes() - before < table.nbytes / 2


def test_pandas(run):
    pytest.importorskip("pandas")
    frame = run["evaluate.trajectory"].to_pandas()
    assert frame["length"].mean() == run.metrics["evaluate"]["episodic_length"]


def test_polars(run):
    pytest.importorskip("polars")
    assert run["evaluate.trajectory"].to_polars().shape == (6, 2)


def test_a_dictionary_has_the_keys_of_the_file(run, directory):
    file = directory / "pipeline.yaml"
    stages = {name: PIPELINE["stages"][name] for name in ("cartpole", "train", "evaluate")}
    file.write_text(json.dumps({**PIPELINE, "stages": stages}))
    events = []
    again = runner.exec(file, directory=directory, stages=["evaluate"], on_event=events.append)
    assert [stage.status for stage in again] == ["cached"] * 3
    assert events[0]["event"] == "run_started"
    assert again["train.policy"].digest == run["train.policy"].digest


def test_settings(run, directory):
    settings = {"evaluate.with.episodes": 3, "cartpole.with.id": "CartPole-v1"}
    again = runner.exec(PIPELINE, set=settings, stages=["evaluate"], directory=directory, progress=False)
    assert again.metrics["evaluate"]["episodes"] == 3
    assert again.stages["train"].status == "cached"


def test_progress_is_written_over(run, directory, monkeypatch, capsys):
    from runner._runs import _Live

    live = _Live()
    live.is_live = True
    monkeypatch.setattr("time.monotonic", iter(range(1, 100)).__next__)
    live({"event": "stage_started", "stage": "train"})
    live({"event": "progress", "stage": "train", "done": 1, "total": 4, "message": "512 steps"})
    live({"event": "stage_finished", "stage": "train", "status": "ran", "seconds": 1.25})
    live({"event": "run_finished"})
    lines = capsys.readouterr().err
    assert lines == "train\rtrain 25% 512 steps\r     ran train, 1.2 s\n"
    # Elsewhere than in a terminal or a notebook there are whole lines alone.
    runner.exec(PIPELINE, stages=["cartpole"], directory=directory)
    assert capsys.readouterr().err == "  cached cartpole, 0.0 s\n"


def test_comparisons(run, directory):
    again = runner.exec(PIPELINE, set={"evaluate.with.episodes": 4}, stages=["evaluate"], directory=directory, progress=False)
    compared = runner.compare(run, again.id, metrics=["evaluate.episodes"], directory=directory)
    episodes = {row["run"]: row[compared.metrics[0]] for row in compared.rows()}
    assert episodes == {run.id: 6, again.id: 4}
    assert "episodes" in compared._repr_html_()
    frame = pytest.importorskip("pandas") and compared.to_pandas()
    assert set(frame["run"]) == {run.id, again.id}
    with pytest.raises(runner.Error):
        runner.compare("nothing", directory=directory)


def test_lineage(run):
    names = [line.split()[0] for line in run["evaluate.metrics"].lineage]
    assert names[0] == "evaluate"
    assert {"train", "cartpole"} <= set(names)


def test_a_notebook_shows_the_report(run):
    report = run.report()
    assert report.path.read_text(encoding="utf-8").startswith("<!")
    assert report._repr_html_() == run._repr_html_()
    assert run._repr_html_().startswith('<iframe srcdoc="&lt;!')
    # A report that is not there is written.
    report.path.unlink()
    assert run.report().path.is_file()


def test_a_notebook_shows_charts(run, tmp_path):
    equity = run.plot("equity")
    assert "policy</text>" in equity._repr_svg_() and "cash</text>" in equity._repr_svg_()
    equity.save(tmp_path / "equity.svg")
    root = xml.etree.ElementTree.parse(tmp_path / "equity.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "%" in run.plot("drawdown").svg
    assert "train</text>" in run.plot("charts/episodic_return").svg
    with pytest.raises(ValueError, match="does not end in"):
        equity.save(tmp_path / "equity.png")
    with pytest.raises(runner.Error) as error:
        run.plot("nothing")
    assert "equity" in error.value.hint and "drawdown" in error.value.hint


def test_a_function_is_declared():
    @runner.stage(by="partition", state=True)
    def by_partition(ctx, bars):
        return bars

    @runner.stage(lookback=3)
    def by_symbol(ctx, bars):
        return bars

    @runner.stage
    def whole(ctx, bars):
        return bars

    assert by_partition.__runner_stage__ == {"by": "partition", "of": None, "lookback": None, "state": True}
    assert by_symbol.__runner_stage__ == {"by": "symbol", "of": None, "lookback": 3, "state": False}
    assert whole.__runner_stage__["by"] is None
    assert whole(None, 3) == 3
    with pytest.raises(ValueError, match="partition"):
        runner.stage(by="row")
    with pytest.raises(ValueError, match="number of rows"):
        runner.stage(lookback=-1)


def test_errors(run, directory):
    with pytest.raises(runner.Error, match="has no stage `nothing`") as error:
        run["nothing"]
    assert "the stages are `lookup`" in error.value.hint
    with pytest.raises(runner.Error, match="has 2 outputs") as error:
        run["evaluate"]
    assert "evaluate.trajectory" in error.value.hint
    with pytest.raises(runner.Error, match="has no output"):
        run.stages["evaluate"]["nothing"]
    with pytest.raises(runner.Error):
        runner.run("nothing", directory=directory)
    with pytest.raises(runner.Error, match="have different columns|is not a table|has no file"):
        run["evaluate.trajectory"].to_arrow("nothing.parquet")
    with pytest.raises(runner.Error, match="not a table"):
        run["train.policy"].to_arrow()
    wrong = {**PIPELINE, "stages": {"env": {"uses": "env/clasic"}}}
    with pytest.raises(runner.Error, match="env/clasic") as error:
        runner.exec(wrong, directory=directory, progress=False)
    assert error.value.code == 2


def test_a_failed_stage(directory, run):
    failing = {"version": 1, "name": "failing", "stages": {"broken": {"run": "exit 3", "outputs": {"out": "out.txt"}}}}
    with pytest.raises(runner.Error, match="stage `broken` failed") as error:
        runner.exec(failing, directory=directory, progress=False, options=["--isolation", "none"])
    assert error.value.code not in (None, 0)
    assert not [path for path in directory.iterdir() if path.name.startswith(".pipeline-")]
