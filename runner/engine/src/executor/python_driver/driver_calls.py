"""Tables, results and the context of a call: what every way of calling a function shares."""

import importlib
import inspect
import json
import linecache
import math
import os
import pathlib
import sys
import traceback

import runner_kinds
from driver_tables import Refused, to_table, write_table


class Context:
    """What a function is given first: see docs/guides/python-stages.md."""

    def __init__(self, request):
        self.seed = request["seed"]
        self.params = request["with"]
        self.partition = None
        self.symbol = None
        self.own = None
        self.state = None
        self.outputs = {
            name: pathlib.Path(output["path"])
            for name, output in request["outputs"].items()
            if output["type"] is None
        }
        self.is_silent = False
        self._not_finite = set()
        self._events = open(request["events"], "a", buffering=1, encoding="utf-8")

    def log(self, *values):
        if not self.is_silent:
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
        if not self.is_silent:
            self._events.write(json.dumps(event) + "\n")


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


def run(function, call, ctx, arguments):
    try:
        return function(ctx, **arguments)
    except Exception as err:
        where = f" in the partition `{ctx.partition}`" if ctx.partition else ""
        report(err)
        kind, text = type(err).__qualname__, str(err).strip()
        raise Refused(f"`{call}` raised {kind}{where}" + (f": {text}" if text else ""), None) from None


def report(err):
    """Prints the traceback of an exception without the frames of the driver and of the import system."""
    frames = err.__traceback__
    own = (str(pathlib.Path(__file__).parent), "<frozen importlib", importlib.__file__)
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    linecache.checkcache()
    traceback.print_exception(type(err), err, frames)
    sys.stderr.flush()
