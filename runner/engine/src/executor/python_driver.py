"""Calls the function of a `uses: python` stage: `driver.py REQUEST`.

The engine writes the request, reads the files that are named in it, and stores nothing if this process fails. It runs on any Python from 3.9 on that has pyarrow.
"""

import faulthandler
import functools
import importlib
import inspect
import json
import linecache
import math
import os
import pathlib
import pickle
import signal
import sys
import traceback
import types

import runner_kinds

# A crash, and a time limit, leave the place in the log.
faulthandler.enable()
faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)

MARK = "__runner_stage__"


class Refused(Exception):
    """An error of the stage that is not an exception of its function."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.message, self.hint = message, hint


def stage(function=None, *, by=None, of=None, state=False):
    """Declares how a function is called: `by="partition"` once for each partition of the input `of`, with `ctx.state` carried if `state` is set."""
    if function is None:
        return functools.partial(stage, by=by, of=of, state=state)
    if by not in (None, "partition"):
        raise ValueError(f'`by` is {by!r}, not "partition"')
    setattr(function, MARK, {"by": by, "of": of, "state": bool(state)})
    return function


class Context:
    """What a function is given first: see docs/python.md."""

    def __init__(self, request):
        self.seed = request["seed"]
        self.params = request["with"]
        self.partition = None
        self.state = None
        self.outputs = {
            name: pathlib.Path(output["path"])
            for name, output in request["outputs"].items()
            if output["type"] is None
        }
        self._not_finite = set()
        self._events = open(request["events"], "a", buffering=1, encoding="utf-8")

    def log(self, *values):
        print(*values, flush=True)

    def progress(self, done, total=None, message=""):
        total = None if total is None else int(total)
        self._emit({"event": "progress", "done": int(done), "total": total, "message": str(message)})

    def metric(self, name, value, step=0):
        name, step, value = str(name), int(step), float(value)
        if math.isfinite(value):
            self._emit({"event": "metric", "name": name, "step": step, "value": value})
        elif name not in self._not_finite:
            self._not_finite.add(name)
            self.log(f"warning: the metric `{name}` is {value} at step {step}: such values are left out")

    def _emit(self, event):
        self._events.write(json.dumps(event) + "\n")


def load_arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as err:
        raise Refused(f"cannot import pyarrow: {err}", "install pyarrow in the environment of the stage") from None
    return pyarrow


def read_tables(files):
    """The rows of Parquet files, mapped into memory and decoded, as one table."""
    pa = load_arrow()
    tables = [pa.parquet.ParquetFile(file["path"], memory_map=True).read() for file in files]
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="default")
    except TypeError:  # before pyarrow 14
        return pa.concat_tables(tables, promote=True)


def is_data_set(artifact):
    files = artifact["files"]
    return artifact["type"] != "file" and bool(files) and all(file["name"].endswith(".parquet") for file in files)


def read_input(port):
    def read(artifact):
        if is_data_set(artifact):
            return read_tables(artifact["files"])
        return pathlib.Path(artifact["path"])

    values = [read(artifact) for artifact in port["artifacts"]]
    if port["points"]:
        return dict(zip(port["points"], values))
    return values[0] if len(values) == 1 else values


def load(call, root):
    """The function of a call, imported from `root` before anything that is installed."""
    sys.path[0] = root
    try:
        import runner  # the installed package has `stage` and `kind` itself
    except ImportError:
        runner = sys.modules["runner"] = types.ModuleType("runner")
    for name, declare in (("stage", stage), ("kind", runner_kinds.kind)):
        if not hasattr(runner, name):
            setattr(runner, name, declare)
    name, _, attribute = call.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as err:
        missing = err.name or ""
        report(err)
        raise Refused(
            f"there is no module `{missing}`",
            f"a package is installed in the stage's environment; a module of the project is part of the key if `{name}` imports it by its name, and else "
            f"by `files: [{missing.replace('.', '/')}.py]`",
        ) from None
    function = functools.reduce(lambda value, part: getattr(value, part, None), attribute.split("."), module)
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise Refused(
            f"`{name}` has no function `{attribute}`",
            f"it has {', '.join(known)}" if known else f"define it: `def {attribute}(ctx, …):`",
        )
    return function


def with_settings(function, arguments, settings):
    """The inputs with the settings: by name, or as the object that a kind's function takes."""
    if not hasattr(function, runner_kinds.MARK):
        return {**arguments, **settings}
    try:
        return runner_kinds.arguments(function, arguments, settings)
    except Exception as err:  # of the class of the settings
        raise Refused(f"the settings are refused: {type(err).__qualname__}: {err}", None) from None


def check_arguments(function, call, arguments):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions in C
        return
    try:
        signature.bind(None, **arguments)
    except TypeError as err:
        raise Refused(
            f"`{call}` cannot be called: {err}",
            f"it is called with a context and, by name, {', '.join(f'`{name}`' for name in arguments) or 'nothing'}: the inputs and `with:`",
        ) from None


def to_table(value, what):
    """A table of Arrow, of pandas, of polars, or of whatever has Arrow's stream interface."""
    pa = load_arrow()
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    try:
        if type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == "DataFrame":
            named = any(name is not None for name in value.index.names)
            return pa.Table.from_pandas(value, preserve_index=named).replace_schema_metadata(None)
        if hasattr(value, "__arrow_c_stream__"):
            return pa.table(value)
        if type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "to_arrow"):
            return value.to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as err:
        raise Refused(f"{what} has columns that are no columns of Arrow: {err}", "convert them to numbers, text or dates") from None
    raise Refused(
        f"{what} is of the type `{type(value).__qualname__}`, which is no table",
        "return a `pyarrow.Table`, or a frame of pandas or polars",
    )


def results(value, call, outputs):
    """The values by output, each of which is there; those of files may have been written already."""
    tables = [name for name, output in outputs.items() if output["type"] is not None]
    if not isinstance(value, dict):
        if value is None and not tables:
            value = {}
        elif len(outputs) == 1:
            value = {next(iter(outputs)): value}
        else:
            raise Refused(
                f"`{call}` returned a value of the type `{type(value).__qualname__}`, not one for each output",
                f"return a dictionary with {', '.join(f'`{name}`' for name in outputs)}",
            )
    unknown = [str(name) for name in value if name not in outputs]
    if unknown:
        raise Refused(
            f"`{call}` returned `{unknown[0]}`, which is no output of the stage",
            f"declare it: `outputs: {{ {unknown[0]}: features }}`",
        )
    missing = [
        name
        for name, output in outputs.items()
        if name not in value and (output["type"] is not None or not os.path.exists(output["path"]))
    ]
    if missing:
        raise Refused(f"`{call}` returned no `{missing[0]}`", "return a dictionary that has each output")
    return value


def write_table(table, path):
    pa = load_arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pa.parquet.write_table(table, path, compression="lz4")
    except (pa.ArrowException, OSError, ValueError) as err:
        raise Refused(f"the table cannot be written as Parquet: {err}", "convert its columns to numbers, text or dates") from None


def write_file(value, path, name, form):
    if form == "json" and isinstance(value, (dict, list)):
        try:
            # What is not finite is read as null, with a warning.
            value = json.dumps(value, default=float)
        except (TypeError, ValueError) as err:
            raise Refused(
                f"the metrics `{name}` cannot be written as JSON: {err}",
                'return numbers by name, `{"sharpe": 1.2}`, with None where there is none, or a list of {"name": …, "step": …, "value": …}',
            ) from None
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise Refused(
            f"the output `{name}` is a file, and its value is of the type `{type(value).__qualname__}`",
            f"return bytes or text, write the file `ctx.outputs[{name!r}]`, or declare a type: `outputs: {{ {name}: features }}`",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def write_results(value, call, outputs, part):
    for name, result in results(value, call, outputs).items():
        output = outputs[name]
        path = pathlib.Path(output["path"])
        if output["type"] is None:
            write_file(result, path, name, output["form"])
        else:
            write_table(to_table(result, f"the output `{name}` of `{call}`"), path / part)


def partitioned(mark, request):
    """The input that the function is called by partitions of."""
    inputs = request["inputs"]
    of = mark["of"]
    data_sets = [name for name, port in inputs.items() if len(port["artifacts"]) == 1 and is_data_set(port["artifacts"][0])]
    if of is None and len(data_sets) == 1:
        of = data_sets[0]
    if of not in data_sets:
        known = ", ".join(f"`{name}`" for name in data_sets) or "none"
        raise Refused(
            "the input of the partitions is not named" if of is None else f"`{of}` is no input with partitions",
            f'the data sets of this stage are {known}: `@stage(by="partition", of="NAME")`',
        )
    files = [name for name, output in request["outputs"].items() if output["type"] is None]
    if files:
        raise Refused(
            f"the output `{files[0]}` is a file, and a function by partition has data sets only",
            f"declare its type: `outputs: {{ {files[0]}: features }}`",
        )
    return of


def by_partition(function, mark, request, ctx):
    call = request["call"]
    of = partitioned(mark, request)
    pathlib.Path(request["report"]).write_text(json.dumps({"of": of, "state": mark["state"]}))
    known = request["known"] if request["known"] and request["known"]["of"] == of else None
    arguments = {name: read_input(port) for name, port in request["inputs"].items() if name != of}
    arguments = with_settings(function, arguments, request["with"])
    check_arguments(function, call, {**arguments, of: None})
    files = request["inputs"][of]["artifacts"][0]["files"]
    names = [file["name"].removesuffix(".parquet") for file in files]
    computed, state = [], None
    # By date, and by symbol within: the order of the states.
    for i in sorted(range(len(files)), key=lambda i: (names[i].rpartition("/")[2], names[i])):
        file, name = files[i], names[i]
        if known is not None and known["parts"][i]["known"]:
            state = known["parts"][i]["state"] and pathlib.Path(known["parts"][i]["state"])
            continue
        computed.append(name)
        ctx.progress(len(computed), len(files), name)
        ctx.partition = name
        if isinstance(state, pathlib.Path):
            state = state.read_bytes()
        # A state is read back even from the partition just computed, so that a cached one has the same effect.
        ctx.state = pickle.loads(state) if state is not None else None
        value = run(function, call, ctx, {**arguments, of: read_tables([file])})
        write_results(value, call, request["outputs"], f"{i:06}.parquet")
        if mark["state"]:
            try:
                state = pickle.dumps(ctx.state, protocol=5)
            except Exception as err:
                raise Refused(
                    f"`ctx.state` after the partition `{name}` cannot be stored: {err}",
                    "keep numbers, arrays and frames in it: it is pickled for the next partition and the next run",
                ) from None
            path = pathlib.Path(request["states"]) / f"{i:06}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(state)
    shown = ", ".join(computed[:20]) + (f" and {len(computed) - 20} more" if len(computed) > 20 else "")
    print(f"computed {len(computed)} of {len(files)} partitions{': ' if computed else ''}{shown}", flush=True)


def run(function, call, ctx, arguments):
    try:
        return function(ctx, **arguments)
    except Exception as err:
        where = f" in the partition `{ctx.partition}`" if ctx.partition else ""
        report(err)
        kind, text = type(err).__qualname__, str(err).strip()
        raise Refused(f"`{call}` raised {kind}{where}" + (f": {text}" if text else ""), None) from None


def report(err):
    """Prints the traceback of an exception without the frames of this file and of the import system."""
    frames = err.__traceback__
    own = (__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", importlib.__file__)
    while frames is not None and frames.tb_frame.f_code.co_filename in own:
        frames = frames.tb_next
    linecache.checkcache()
    traceback.print_exception(type(err), err, frames)
    sys.stderr.flush()


def whole(function, request, ctx):
    call = request["call"]
    arguments = {name: read_input(port) for name, port in request["inputs"].items()}
    arguments = with_settings(function, arguments, request["with"])
    check_arguments(function, call, arguments)
    write_results(run(function, call, ctx, arguments), call, request["outputs"], "table.parquet")


def main(request):
    ctx = Context(request)
    try:
        function = load(request["call"], request["root"])
        mark = getattr(function, MARK, None)
        if mark is not None and mark["by"] == "partition":
            by_partition(function, mark, request, ctx)
        else:
            whole(function, request, ctx)
    except Refused as err:
        message = {"message": err.message, "hint": err.hint}
    except Exception as err:  # of the module's own code while it is imported
        report(err)
        message = {"message": f"`{request['call']}` cannot be imported: {type(err).__qualname__}: {err}", "hint": None}
    else:
        # What ends the interpreter before its time may leave with status 0.
        pathlib.Path(request["done"]).touch()
        return
    pathlib.Path(request["error"]).write_text(json.dumps(message))
    sys.stdout.flush()
    # Threads and exit handlers of the modules do not change the outcome.
    os._exit(1)


if __name__ == "__main__":
    main(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
