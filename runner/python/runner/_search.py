"""Searches over the settings of a pipeline."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from . import _program
from ._error import Error
from ._runs import Directory, Run, exec, written

if TYPE_CHECKING:
    import pandas


class Search:
    """A search, as it was when it was read.

    Attributes:
        id: its id.
        pipeline: the pipeline's name.
        state: `running`, `done`, or `stopped`.
        objectives: `{"metric": "evaluate.utility", "maximize": True}` for each.
        trials: a dictionary for each trial, in order: `trial`, `state` (`running`, `waiting`, `pruned`, `done` or `failed`), `settings` by name, `objective`
            (the mean over seeds at the trial's last rung; a list where there are several objectives), `results` by rung, `seconds`, `error`.
        importance: the share of each setting alone in the variance of the first objective, by name; empty of too few trials.
    """

    def __init__(self, name: str | None = None, directory: Directory = None):
        """The search `name`: an id or a unique part of one, a run that searched, or a pipeline. Without one, the only search of the store.

        Raises:
            Error: there is none.
        """
        self._record = _program.document(["search", "show", *([] if name is None else [name])], directory)
        if "trials" not in self._record:
            names = [search["id"] for search in self._record.get("searches", [])]
            raise Error(f"there are {len(names)} searches", f"name one: {', '.join(names)}" if names else "run a pipeline that has `search:`")
        self._directory = directory
        self.id: str = self._record["id"]
        self.pipeline: str = self._record["pipeline"]
        self.state: str = self._record["state"]
        self.objectives: list[dict[str, Any]] = self._record["objectives"]
        self.trials: list[dict[str, Any]] = self._record["trials"]
        self.importance: dict[str, float] = (self._record["importance"] or {}).get("settings", {})

    def __repr__(self) -> str:
        metrics = ", ".join(f"{'maximize' if one['maximize'] else 'minimize'} {one['metric']}" for one in self.objectives)
        return f"<Search {self.id}: {self.state}, {len(self.trials)} trials, {metrics}>"

    @property
    def run(self) -> Run:
        """The last run of the search.

        Raises:
            Error: no run of it has ended, or it was removed.
        """
        runs = self._record["runs"]
        if not runs:
            raise Error(f"no run of the search {self.id} has ended")
        return Run(runs[-1]["run"], self._directory)

    @property
    def best(self) -> dict[str, Any]:
        """The settings of the best trial by name, to be given as `set=` to `runner.exec`. Of several objectives, the first trial of the Pareto front.

        Raises:
            Error: no trial has a result.
        """
        front = self.front
        if not front:
            raise Error(f"no trial of the search {self.id} has a result")
        return dict(front[0]["settings"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The trials that no other is better than in all objectives; with one objective, the best trial."""
        by_number = {trial["trial"]: trial for trial in self.trials}
        return [by_number[number] for number in self._record["best"]]

    def to_pandas(self) -> pandas.DataFrame:
        """The trials as pandas' frame: a column for each setting beside `trial`, `state`, `objective` and `seconds`."""
        import pandas

        rows = [
            {**{key: trial[key] for key in ("trial", "state", "objective", "seconds")}, **trial["settings"]}
            for trial in self.trials
        ]
        return pandas.DataFrame(rows)

    def export_optuna(self, path: str | PathLike[str]) -> Path:
        """Writes a journal that `optuna-dashboard PATH` and `optuna.load_study` with `JournalFileBackend(PATH)` read.

        Raises:
            Error: the file cannot be written.
        """
        path = Path(path).absolute()
        _program.document(["search", "export", self.id, str(path), "--optuna"], self._directory)
        return path

    def _repr_html_(self) -> str | None:
        """The report of the last run, where a notebook shows the search."""
        try:
            return self.run._repr_html_()
        except Error:
            return None


def search(
    pipeline: str | PathLike[str] | Mapping[str, Any],
    *,
    over: Mapping[str, Any] | None = None,
    objective: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
    trials: int | None = None,
    block: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    profile: Sequence[str] = (),
    options: Sequence[str] = (),
    directory: Directory = None,
    on_event: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
) -> Search:
    """Searches the settings of a pipeline, and returns the search. What was computed before is taken from the cache; an interrupted search goes on.

    Args:
        pipeline: a file, or the same as a dictionary. A file with its own `search:` needs nothing more. Of one that is given `over`, the blocks beside
            its parameters, profiles and stages (`notify:`, `track:`) do not apply.
        over: the settings that are searched: `{"train.with.learning_rate": {"log": [1e-5, 1e-2]}}`.
        objective: `{"maximize": "evaluate.utility"}`; a list of several gives a Pareto front.
        trials: the number of trials.
        block: more keys of the block `search:`, such as `{"seeds": 3, "pruner": {"asha": {"resource": "train.total_timesteps", "min": 30_000}}}`.
        set, profile, options, directory, on_event, progress: as of `exec`.

    Raises:
        Error: the pipeline or the search is invalid, or a stage failed.
    """
    given = {"over": over, "objective": objective, "trials": trials}
    own = {**(block or {}), **{key: value for key, value in given.items() if value is not None}}

    def run(pipeline: str | PathLike[str] | Mapping[str, Any]) -> Search:
        done = exec(pipeline, set=set, profile=profile, options=options, directory=directory, on_event=on_event, progress=progress)
        return Search(done.id, directory)

    if not own:
        return run(pipeline)
    if isinstance(pipeline, Mapping):
        return run({**pipeline, "search": {**pipeline.get("search", {}), **own}})
    if over is None or objective is None:
        raise Error("a search of a file needs `over` and `objective`", "give both, or change the block `search:` of the file")
    file = Path(directory or ".") / fspath(pipeline)
    document = {"version": 1, "name": _name(file), "include": file.name, "search": own}
    # Beside the file, so that the paths of both start in the same folder.
    with written(document, file.parent) as path:
        return run(path)


def _name(file: Path) -> str:
    """The name of the pipeline in a file."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise Error(f"cannot read {file}: {error.strerror}") from None
    found = re.search(r"""^["']?name["']?\s*:\s*["']?([A-Za-z][\w-]*)""", text, re.MULTILINE)
    return found[1] if found else "search"
