"""Calls the function of a `uses: python` stage: `driver.py REQUEST`.

The engine writes the request, reads the files that are named in it, and stores nothing if this process fails. It runs on any Python from 3.9 on that has pyarrow.
"""

import faulthandler
import functools
import importlib
import inspect
import json
import os
import pathlib
import signal
import sys
import types

import _stage
import runner_kinds
from driver_calls import Context, check_arguments, report, run, with_settings, write_results
from driver_parts import UNCHECKED, by_parts
from driver_tables import Refused, read_input

# A crash, and a time limit, leave the place in the log.
faulthandler.enable()
faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)

MARK = "__runner_stage__"


def load(call, root):
    """The function of a call, imported from `root` before anything that is installed."""
    sys.path[0] = root
    # A module of the project may have the same name.
    del sys.modules["_stage"]
    try:
        import runner
    except ImportError:
        runner = sys.modules["runner"] = types.ModuleType("runner")
    # The declarations are the engine's, whatever the version of an installed package.
    runner.stage, runner.kind = _stage.stage, runner_kinds.kind
    name, _, attribute = call.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as err:
        missing = err.name or ""
        report(err)
        raise Refused(
            f"there is no module `{missing}`",
            "install the package in the stage's environment (`python:`), or write the module beside the pipeline",
        ) from None
    function = functools.reduce(lambda value, part: getattr(value, part, None), attribute.split("."), module)
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise Refused(
            f"`{name}` has no function `{attribute}`",
            f"it has {', '.join(known)}" if known else f"define it: `def {attribute}(ctx, …):`",
        )
    return function


def whole(function, request, ctx):
    call = request["call"]
    arguments = {name: read_input(port) for name, port in request["inputs"].items()}
    arguments = with_settings(function, arguments, request["with"])
    check_arguments(function, call, arguments)
    write_results(run(function, call, ctx, arguments), call, request["outputs"], "table.parquet")


def main(request, is_check):
    ctx = Context(request)
    try:
        function = load(request["call"], request["root"])
        mark = getattr(function, MARK, None)
        if mark is not None and mark["by"] is not None:
            is_checked = by_parts(function, mark, request, ctx, is_check)
            if is_check:
                os._exit(0 if is_checked else UNCHECKED)
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
    main(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2:] == ["check"])
