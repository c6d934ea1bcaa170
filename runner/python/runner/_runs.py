"""Runs, their stages and artifacts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cached_property
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from . import _program
from ._error import Error
from ._pictures import Plot, Report

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Directory = str | PathLike[str] | None


class Artifact:
    """An output of a stage: a manifest and files of the store, which are read-only.

    Attributes:
        digest: its digest.
        type: its type, such as `features`.
        meta: its metadata.
        size: bytes of all its files.
    """

    def __init__(self, name: str, directory: Directory = None):
        """The artifact `RUN/STAGE.OUTPUT` or `DIGEST`; `RUN/STAGE` where the stage has one output.

        Raises:
            Error: there is none of this name.
        """
        found = _program.document(["show", name, "--rows", "0"], directory)
        if "digest" not in found:
            found = _program.document(["show", _only_output(name, found), "--rows", "0"], directory)
        self._found = found
        self._directory = directory
        self.digest: str = found["digest"]
        self.type: str = found["type"]
        self.meta: dict[str, Any] = found["meta"]
        self.size: int = found["size"]

    def __repr__(self) -> str:
        return f"<Artifact {self.type} {self.digest[:12]}, {len(self._found['entries'])} files, {self.size} bytes>"

    @property
    def origin(self) -> dict[str, str] | None:
        """The run, stage and output that it was found by, or one that made it."""
        return self._found.get("origin")

    @property
    def lineage(self) -> list[str]:
        """The stages that it comes from, a line each, indented by distance."""
        return self._found.get("lineage", [])

    @property
    def files(self) -> dict[str, Path]:
        """The file of each entry, in order: blobs of the store, to be read and mapped but not changed.

        Raises:
            Error: one is missing.
        """
        home = _program.home(self._directory)
        return {entry["path"]: _program.blob(home, entry["blob"]) for entry in self._found["entries"]}

    def to_arrow(self, entry: str | None = None) -> pyarrow.Table:
        """The rows as a table: of `entry`, or of all files in order. Arrow files are mapped, not copied; Parquet is decoded.

        Raises:
            Error: there is no such entry, it is not a table, or the files have different columns.
        """
        import pyarrow

        files = self.files
        if entry is not None:
            if entry not in files:
                raise Error(f"the artifact has no file `{entry}`", f"its files are {', '.join(files)}")
            files = {entry: files[entry]}
        tables = {path: _table(path, file) for path, file in files.items()}
        if not tables:
            raise Error("the artifact has no files, and so no columns")
        first, *others = tables.items()
        for path, table in others:
            if table.schema.names != first[1].schema.names:
                raise Error(
                    f"the files `{first[0]}` and `{path}` have different columns",
                    f"name one: `.to_arrow({first[0]!r})`",
                )
        return pyarrow.concat_tables(tables.values(), promote_options="default")

    def to_pandas(self, entry: str | None = None) -> pandas.DataFrame:
        """The rows as pandas' frame; see `to_arrow`."""
        return self.to_arrow(entry).to_pandas()

    def to_polars(self, entry: str | None = None) -> polars.DataFrame:
        """The rows as polars' frame, which shares the memory of `to_arrow` where it can."""
        import polars

        frame = polars.from_arrow(self.to_arrow(entry))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by Arrow's stream interface, for any library that takes it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _table(path: str, file: Path) -> pyarrow.Table:
    """The table in a file, by the ending of its name in the artifact."""
    import pyarrow

    ending = path.rsplit(".", 1)[-1]
    if ending == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(file).read()
    if ending in ("arrow", "feather", "ipc"):
        return pyarrow.ipc.open_file(pyarrow.memory_map(str(file))).read_all()
    if ending in ("jsonl", "ndjson"):
        with open(file, encoding="utf-8") as lines:
            return pyarrow.Table.from_pylist([json.loads(line) for line in lines if line.strip()])
    if ending == "csv":
        import pyarrow.csv

        return pyarrow.csv.read_csv(file)
    raise Error(f"`{path}` is not a table", "its bytes are those of `.files[...]`")


def _only_output(name: str, found: Mapping[str, Any]) -> str:
    """The name of a stage's only output."""
    if "stage" not in found:
        raise Error(f"`{name}` is a run, not an artifact", "give RUN/STAGE.OUTPUT")
    outputs = list(found["stage"]["outputs"])
    if len(outputs) != 1:
        raise Error(f"`{name}` has {len(outputs)} outputs", f"give one: {', '.join(f'{name}.{output}' for output in outputs)}")
    return f"{name}.{outputs[0]}"


class Stage:
    """A stage of a run.

    Attributes:
        id: its name, with its point in a matrix (`train[lr=0.001]`).
        kind: its kind, such as `train/ppo`.
        status: `cached`, `ran`, `failed`, `skipped`, or `None` if it did not end.
        seconds: its duration in this run.
        config: its resolved configuration.
        outputs: the digest of each output.
        error: why it failed, or `None`.
    """

    def __init__(self, run: Run, record: Mapping[str, Any]):
        self._run = run
        self._record = record
        self.id: str = record["id"]
        self.kind: str = record["kind"]
        self.status: str | None = record["status"]
        self.seconds: float = record["seconds"]
        self.config: Any = record["config"]
        self.outputs: dict[str, str] = dict(record["outputs"])
        self.error: str | None = record["error"]

    def __repr__(self) -> str:
        return f"<Stage {self.id} ({self.kind}): {self.status}, outputs {', '.join(self.outputs) or 'none'}>"

    @property
    def metrics(self) -> dict[str, float]:
        """The last value of each metric: of its `metrics` output where it has one, else of those that it reported in this run."""
        if "metrics" in self.outputs:
            summary = self["metrics"].meta.get("summary")
            if isinstance(summary, dict):
                return {name: value for name, value in summary.items() if isinstance(value, (int, float))}
        return {name: series[-1]["value"] for name, series in self._record["metrics"].items() if series}

    def __getitem__(self, output: str) -> Artifact:
        """The output of this name.

        Raises:
            Error: there is none.
        """
        return self._run[f"{self.id}.{output}"]


class Run:
    """A run of a pipeline, as it was when it was read.

    Attributes:
        id: its id.
        pipeline: the pipeline's name.
        status: `done`, `failed` and so on.
        seconds: its duration.
        params: the parameters as resolved.
    """

    def __init__(self, name: str = "latest", directory: Directory = None):
        record = _program.document(["show", name], directory)
        if "stages" not in record:
            raise Error(f"`{name}` is not a run", "`runner.runs()` lists them")
        self._record = record
        self._directory = directory
        self.id: str = record["id"]
        self.pipeline: str = record["pipeline"]
        self.status: str = record["status"]
        self.seconds: float = record["seconds"]
        self.params: dict[str, Any] = record["params"]

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.pipeline}: {self.status}, stages {', '.join(self.stages)}>"

    @cached_property
    def stages(self) -> dict[str, Stage]:
        """The stages by name, in topological order."""
        return {record["id"]: Stage(self, record) for record in self._record["stages"]}

    def report(self) -> Report:
        """The report, which a notebook shows; `path` is its file. It is written if it is not there yet.

        Raises:
            Error: it cannot be written.
        """
        page = _program.home(self._directory) / "runs" / self.id / "report.html"
        if not page.is_file():
            page = Path(_program.document(["report", self.id], self._directory)["report"])
        return Report(page)

    def plot(self, name: str) -> Plot:
        """A chart as SVG, which a notebook shows: `equity` or `drawdown` of its evaluation, or a metric over steps.

        Raises:
            Error: it has no such chart; the hint names those that it has.
        """
        return Plot(name, _program.document(["report", self.id, "--chart", name], self._directory)["svg"])

    def _repr_html_(self) -> str:
        """The report, where a notebook shows the run."""
        return self.report()._repr_html_()

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of each stage that has some."""
        found = {name: stage.metrics for name, stage in self.stages.items()}
        return {name: metrics for name, metrics in found.items() if metrics}

    def __getitem__(self, name: str) -> Artifact:
        """The artifact `STAGE.OUTPUT`, or `STAGE` where that has one output.

        Raises:
            Error: there is none of this name.
        """
        return Artifact(f"{self.id}/{name}", self._directory)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages.values())


def run(name: str = "latest", *, directory: Directory = None) -> Run:
    """The run `name`: `latest`, a name, an id or a unique part of one.

    Raises:
        Error: there is none.
    """
    return Run(name, directory)


def runs(*, directory: Directory = None) -> list[dict[str, Any]]:
    """The runs of the store, as `runner runs --json` describes them."""
    return _program.document(["runs"], directory)


class Comparison:
    """Runs, or points of a matrix, side by side.

    Attributes:
        parameters: the names of the parameters that differ.
        metrics: the names of the metrics, the first one of most interest.
        groups: as `runner compare --json` describes them: what differs in repetitions alone (`seed`) is one group, with the mean, the standard
            deviation and the number of each metric.
    """

    def __init__(self, record: Mapping[str, Any]):
        self._record = record
        self.parameters: list[str] = record["parameters"]
        self.metrics: list[str] = record["metrics"]
        self.groups: list[dict[str, Any]] = record["groups"]

    def __repr__(self) -> str:
        return f"<Comparison of {sum(len(group['points']) for group in self.groups)} points in {len(self.groups)} groups>"

    def rows(self) -> list[dict[str, Any]]:
        """A row for each point: `group`, `run`, `point`, `status`, then its parameters and its metrics by name, `None` where it has none."""
        return [
            {
                "group": group["group"],
                "run": point["run"],
                "point": point["point"],
                "status": point["status"],
                **{name: point["parameters"].get(name) for name in self.parameters},
                **{name: point["metrics"].get(name) for name in self.metrics},
            }
            for group in self.groups
            for point in group["points"]
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as pandas' frame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> polars.DataFrame:
        """The rows as polars' frame."""
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None, strict=False)

    def _repr_html_(self) -> str:
        columns = list(self.rows()[0]) if self.groups else []
        cells = lambda tag, values: "".join(f"<{tag}>{escape(_shown(value))}</{tag}>" for value in values)  # noqa: E731
        lines = "".join(f"<tr>{cells('td', row.values())}</tr>" for row in self.rows())
        return f"<table><tr>{cells('th', columns)}</tr>{lines}</table>"


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def compare(
    *runs: str | Run,
    where: str | None = None,
    metrics: Sequence[str] = (),
    over: Sequence[str] = (),
    directory: Directory = None,
) -> Comparison:
    """Compares runs, stages of runs (`RUN/STAGE`) or points of a matrix (`RUN/STAGE[seed=1]`), as `runner compare` does.

    Args:
        runs: what to compare.
        where: also all runs that match this expression (`runner runs --help`).
        metrics: these metrics alone; by default the summary metrics of evaluations and trainings.
        over: axes and parameters that are repetitions, besides `seed`.
        directory: where the store is looked for, if not from the current one upwards.

    Raises:
        Error: there is no such run.
    """
    arguments = ["compare", *(name.id if isinstance(name, Run) else name for name in runs)]
    arguments += ["--where", where] if where is not None else []
    arguments += [part for name in metrics for part in ("--metric", name)]
    arguments += [part for name in over for part in ("--over", name)]
    return Comparison(_program.document(arguments, directory))


def exec(
    pipeline: str | PathLike[str] | Mapping[str, Any],
    *,
    set: Mapping[str, Any] | None = None,
    profile: Sequence[str] = (),
    stages: Sequence[str] = (),
    options: Sequence[str] = (),
    directory: Directory = None,
    on_event: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
) -> Run:
    """Runs a pipeline and returns its run. The program runs beside this process; an interrupt stops it, and what it has finished stays cached.

    Args:
        pipeline: a file, or the same as a dictionary, whose relative paths start at `directory`. Both give the same keys.
        set: parameters and settings by name, as `--set`: `{"train.with.learning_rate": 1e-4}`.
        profile: profiles of the pipeline, in order.
        stages: the stages to run, with what they need; all if empty.
        options: more arguments of `runner exec`, such as `["--force", "train"]`.
        directory: the directory to run in, if not the current one.
        on_event: is called with each event, as `runner exec --json` prints it.
        progress: if true and without `on_event`, prints a line for each stage that ends and, in a terminal or a notebook, the progress of those that run.

    Raises:
        Error: the pipeline is invalid, or a stage failed.
    """
    arguments = ["exec"]
    for name, value in (set or {}).items():
        arguments += ["--set", f"{name}={json.dumps(value)}"]
    for name in profile:
        arguments += ["--profile", name]
    arguments += ["--json", *options]
    if not isinstance(pipeline, Mapping):
        return _exec([*arguments, fspath(pipeline), *stages], directory, on_event or (_Live() if progress else _ignore))
    with written(pipeline, Path(directory or ".")) as path:
        return _exec([*arguments, str(path), *stages], directory, on_event or (_Live() if progress else _ignore))


@contextmanager
def written(pipeline: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """A file of the pipeline, in the folder where its relative paths start, that is removed afterwards."""
    # JSON is YAML.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=".pipeline-", suffix=".yaml") as file:
        json.dump(pipeline, file)
        file.flush()
        yield Path(file.name).resolve()


def _exec(arguments: list[str], directory: Directory, on_event: Callable[[dict[str, Any]], None]) -> Run:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as messages:
        child = subprocess.Popen(
            _program.command(arguments, directory),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            encoding="utf-8",
            # An interrupt of the terminal reaches it through us alone, once.
            start_new_session=True,
        )
        id, failed = None, []
        try:
            assert child.stdout is not None
            for line in child.stdout:
                event = json.loads(line)
                id = event.get("run", id) if event.get("event") == "run_started" else id
                if event.get("event") == "stage_finished" and event["status"] == "failed":
                    failed.append(event)
                on_event(event)
        except BaseException:
            child.send_signal(signal.SIGINT)
            if child.stdout is not None:
                child.stdout.read()
            child.wait()
            raise
        code = child.wait()
        if code != 0:
            messages.seek(0)
            if not failed:
                raise _program.failure(messages.read(), code)
            texts = [f"stage `{event['stage']}` failed: {event['error']}" for event in failed]
            hints = [event["hint"] for event in failed if event.get("hint")]
            raise Error("\n".join(texts), "\n".join(hints) or None, code)
        if id is None:
            raise Error("the program reported no run", code=code)
    return Run(id, directory)


def _ignore(event: dict[str, Any]) -> None:
    """Shows nothing."""


class _Live:
    """Prints a line for each stage that ends; in a terminal or a notebook also one, written over and over, with the progress of what runs."""

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty() or "ipykernel" in sys.modules
        self.running: dict[str, str] = {}
        self.width, self.last = 0, 0.0

    def __call__(self, event: dict[str, Any]) -> None:
        kind, stage = event.get("event"), event.get("stage", "")
        if kind == "stage_finished":
            self.running.pop(stage, None)
            self._line(f"{event['status']:>8} {stage}, {event['seconds']:.1f} s", end="\n")
        elif kind in ("stage_started", "progress"):
            total = f" {event['done'] / event['total']:.0%}" if event.get("total") else ""
            self.running[stage] = f"{stage}{total} {event.get('message', '')}".strip()
        elif kind == "run_finished" and self.width:
            self._line("", end="\r")
        if self.is_live and self.running and time.monotonic() - self.last > 0.2:
            self.last = time.monotonic()
            text = "; ".join(self.running.values())
            self._line(text if len(text) < 100 else f"{text[:99]}…", end="\r")

    def _line(self, text: str, end: str) -> None:
        # What the line before had beyond this one is blanked.
        print(text.ljust(self.width), end=end, file=sys.stderr, flush=True)
        self.width = len(text) if end == "\r" else 0
