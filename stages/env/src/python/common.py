"""What worker processes have in common: their start, their errors, and the messages that they exchange with the engine.

Standard input is the file of the shared arrays, standard output a socket to the engine. The engine sends a request, a line of JSON, and then a byte for each
command; an answer is `k`, or `e` and a line of JSON. The program of a worker follows this text and ends with `main(function)`. It runs on any Python from 3.9 on.
"""

import faulthandler
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

# A crash, and a time limit, leave the place in the error. The alarm ends a process whose engine is gone, too, wherever it hangs.
faulthandler.enable()
faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
# Ctrl-C is the engine's.
signal.signal(signal.SIGINT, signal.SIG_IGN)


class Refused(Exception):
    """An error that is not an exception of the user's code."""

    def __init__(self, message, hint=None):
        super().__init__(message)
        self.message, self.hint = message, hint


class Raised(Exception):
    """An exception of the user's code."""

    def __init__(self, what, cause):
        super().__init__(what)
        self.what, self.cause = what, cause


def installed_packages():
    """The versions of the installed packages, by the directories that installers write."""
    found = {}
    for place in sys.path:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            stem, dot, kind = name.rpartition(".")
            if dot and kind in ("dist-info", "egg-info"):
                package, _, version = stem.partition("-")
                # The first on the path is the one that is imported.
                found.setdefault(package.replace("_", "-").lower(), version)
    return dict(sorted(found.items()))


def inside(what, function, *args, **kwargs):
    """The result of the user's code, whose exceptions are named."""
    try:
        return function(*args, **kwargs)
    except Refused:
        raise
    except (Exception, SystemExit) as err:
        raise Raised(what, err) from None


def called(call, returns):
    """The function that `module:function` names."""
    module, _, attribute = call.partition(":")
    try:
        loaded = importlib.import_module(module)
    except Refused:
        raise
    except (Exception, SystemExit) as err:
        if isinstance(err, ModuleNotFoundError):
            missing = (err.name or "").replace(".", "/")
            print(f"a module of the project is seen if `{module}` imports it by its name, or by `files: [{missing}.py]`", file=sys.stderr)
        raise Raised(f"`{module}` cannot be imported", err) from None
    function = functools.reduce(lambda value, part: getattr(value, part, None), attribute.split("."), loaded)
    if not callable(function):
        known = [key for key, value in vars(loaded).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise Refused(
            f"`{module}` has no function `{attribute}`",
            f"it has {', '.join(known)}" if known else f"define it: `def {attribute}(…):`, which returns {returns}",
        )
    return function


class Package(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """The modules of the Python package `runner` that need no native code: those of this program, also where another version is installed, whose other modules
    are then found beside them."""

    def __init__(self, texts, root):
        self.texts = texts
        found = importlib.machinery.PathFinder.find_spec("runner")
        # A project may have a module of this name.
        self.is_hidden = found is not None and is_below(found.origin, root)
        self.rest = list(found.submodule_search_locations or []) if found is not None and not self.is_hidden else []

    def find_spec(self, name, path, target=None):
        package, _, module = name.partition(".")
        if package != "runner" or self.is_hidden or (module or "__init__") not in self.texts:
            return None
        spec = importlib.util.spec_from_loader(name, self, origin=f"runner/{module or '__init__'}.py", is_package=not module)
        if not module:
            spec.submodule_search_locations = self.rest
        return spec

    def get_source(self, name):
        return self.texts[name.partition(".")[2] or "__init__"]

    def is_package(self, name):
        return name == "runner"


def is_below(path, root):
    return path is not None and os.path.realpath(path).startswith(os.path.realpath(root) + os.sep)


def trace_of(err):
    """The traceback of an exception without the frames of this text and of the import system."""
    frames = err.__traceback__
    own = ("<string>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", importlib.__file__, functools.__file__)
    while frames is not None and frames.tb_frame.f_code.co_filename in own:
        frames = frames.tb_next
    linecache.checkcache()
    return "".join(traceback.format_exception(type(err), err, frames))


def watch(control):
    """Ends this process after the engine, even in the midst of a step."""
    poll = select.poll()
    poll.register(control.fileno(), 0)
    poll.poll()
    # Time for an orderly end, where environments are closed.
    time.sleep(3)
    os._exit(1)


def read_line(control):
    line = b""
    while not line.endswith(b"\n"):
        piece = control.recv(1 << 16)
        if not piece:
            os._exit(1)
        line += piece
    return line


def read_bytes(control, count):
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        got = control.recv_into(view[at:])
        if not got:
            os._exit(1)
        at += got
    return data


def limit(seconds):
    """Ends the process if it takes longer than this from now on; 0 is no limit."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def send(control, answer, tag=b"k"):
    """Sends a message: the byte that says what it is, and a line of JSON."""
    control.sendall(tag + json.dumps(answer).encode() + b"\n")


def python_version():
    return f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"


def main(carry_out):
    """Calls `carry_out(request, shared, control)` with the engine's request, the file of the shared arrays and the socket, and reports its errors."""
    control = socket.socket(fileno=os.dup(1))
    shared = os.dup(0)
    # What the user's code prints goes to standard error, and it has no standard input.
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=watch, args=(control,), daemon=True).start()
    request = json.loads(read_line(control))
    limit(request["start_limit"])
    sys.path[0] = request["root"]
    sys.meta_path.insert(0, Package(request["package"], request["root"]))
    try:
        carry_out(request, shared, control)
        return
    except Refused as err:
        said = {"message": err.message, "hint": err.hint, "trace": ""}
    except Raised as raised:
        err = raised.cause
        text = str(err).strip()
        message = f"{raised.what}: {type(err).__qualname__}" + (f": {text}" if text else "")
        said = {"message": message, "hint": None, "trace": trace_of(err)}
    limit(0)
    sys.stdout.flush()
    sys.stderr.flush()
    send(control, said, b"e")
    # Threads and exit handlers of the user's code do not change the outcome.
    os._exit(1)
