"""Runs an algorithm for `train/python`. It follows `common.py` of `stages_env`, and needs Gymnasium 1.1 or later, and NumPy.

The engine steps the environments; their arrays lie in memory that both map. This process asks: `s` steps the environments, and `j` with a line of JSON is
any other request.
"""

import math
import mmap
import random
import struct

CONTAINER = b"runner state 1\n"


class Cancelled(BaseException):
    """Ends the function after Ctrl-C, once its state is written. Not an Exception, so that it passes the function's own handlers."""


# States: a container of JSON and raw arrays.


class Packer:
    """Writes nested dictionaries, lists, tuples, numbers, text, bytes, arrays and tensors; nothing of it is code."""

    def __init__(self):
        self.parts, self.about, self.size = [], [], 0

    def add(self, data, kind, shape):
        data = memoryview(data)
        # Views of no elements cannot be cast.
        data = data.cast("B") if data.nbytes else memoryview(b"")
        self.parts.append(data)
        self.about.append([kind, list(shape), self.size, len(data)])
        self.size += len(data)
        return len(self.about) - 1

    def array(self, array, at):
        if array.dtype.hasobject:
            raise Error(f"{at} is an array of objects", "give arrays of numbers or of text, or lists")
        # NumPy's own description, which names the fields of structured arrays, too.
        kind = np.lib.format.dtype_to_descr(array.dtype)
        return self.add(np.ascontiguousarray(array).reshape(-1).view(np.uint8), kind, array.shape)

    def pack(self, value, at):
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return value
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": self.add(value, "bytes", [len(value)])}
        if isinstance(value, np.ndarray):
            return {"array": self.array(value, at)}
        if isinstance(value, np.generic):
            return {"scalar": self.array(np.asarray(value), at)}
        if isinstance(value, list):
            return [self.pack(item, f"{at}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                raise Error(f"{at} is a `{type(value).__qualname__}`", "give the leaves of it as a list (of JAX: `jax.tree.leaves`)")
            return {"tuple": [self.pack(item, f"{at}[{i}]") for i, item in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(key, f"a key of {at}"), self.pack(item, f"{at}[{key!r}]")] for key, item in value.items()]}
        if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
            return {"tensor": self.tensor(value)}
        if hasattr(value, "__array__"):
            return {"array": self.array(np.asarray(value), at)}
        raise Error(
            f"{at} is of the type `{type(value).__qualname__}`",
            "a state is dictionaries, lists, numbers, text, bytes, NumPy arrays and torch tensors: of a module its `state_dict()`, "
            "of a NumPy generator its `bit_generator.state`",
        )

    def tensor(self, value):
        torch = sys.modules["torch"]
        flat = value.detach().cpu().contiguous().reshape(-1)
        return self.add(flat.view(torch.uint8).numpy(), str(flat.dtype).removeprefix("torch."), value.shape)


def unpack(value, about, data):
    if isinstance(value, list):
        return [unpack(item, about, data) for item in value]
    if not isinstance(value, dict):
        return value
    ((form, inner),) = value.items()
    if form == "tuple":
        return tuple(unpack(item, about, data) for item in inner)
    if form == "dict":
        return {unpack(key, about, data): unpack(item, about, data) for key, item in inner}
    kind, shape, offset, size = about[inner]
    raw = data[offset : offset + size]
    if form == "bytes":
        return bytes(raw)
    if form == "tensor":
        import torch

        # A copy, which may be written to.
        flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
        return flat.view(getattr(torch, kind)).reshape(shape)
    dtype = np.lib.format.descr_to_dtype(as_descr(kind))
    array = np.frombuffer(bytearray(raw), dtype).reshape(shape) if size else np.empty(shape, dtype)
    return array[()] if form == "scalar" else array


def as_descr(kind):
    """A description of a type as `descr_to_dtype` takes it: JSON has lists for its tuples."""
    if isinstance(kind, list):
        return [tuple(as_descr(part) if i == 1 else tuple(part) if isinstance(part, list) else part for i, part in enumerate(field)) for field in kind]
    return kind


def write_state(path, state, what):
    packer = Packer()
    tree = packer.pack(state, what)
    head = json.dumps({"value": tree, "arrays": packer.about}).encode()
    with open(path, "wb") as file:
        file.write(CONTAINER + struct.pack("<Q", len(head)) + head)
        for part in packer.parts:
            file.write(part)


def read_state(path):
    with open(path, "rb") as file:
        data = memoryview(file.read())
    start = len(CONTAINER) + 8
    if bytes(data[: len(CONTAINER)]) != CONTAINER:
        raise Error("the checkpoint is of another version", "`--force` trains from the beginning")
    (length,) = struct.unpack("<Q", data[len(CONTAINER) : start])
    head = json.loads(bytes(data[start : start + length]))
    return unpack(head["value"], head["arrays"], data[start + length :])


def random_states():
    """The states of the global random numbers: of Python, NumPy and, where it is loaded, torch."""
    states = {"python": random.getstate(), "numpy": np.random.get_state()}
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states):
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    if "torch" in states:
        import torch

        torch.set_rng_state(states["torch"])
        if "cuda" in states:
            torch.cuda.set_rng_state_all(states["cuda"])


# Policies that the function gives.


def write_policy(path, policy, what):
    """A line of JSON that describes the policy, and then the bytes that it names, in their order."""
    from runner import trained

    parts = []

    def add(name, data):
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = bytes(data)
        elif isinstance(data, (str, os.PathLike)):
            with open(data, "rb") as file:
                data = file.read()
        else:
            raise Error(f"`{name}` of {what} is of the type `{type(data).__qualname__}`", "give bytes, or the path of a file")
        parts.append(data)
        return [name, len(data)]

    if isinstance(policy, trained.Saved):
        if not isinstance(policy.load, str):
            raise Error(f"`load` of {what} is of the type `{type(policy.load).__qualname__}`", "name the function: `load=\"my_agent:load\"`")
        about = {"form": "python", "load": policy.load, "state_len": int(policy.state_len)}
        about["files"] = [add(str(name), data) for name, data in sorted(policy.files.items())]
    elif isinstance(policy, trained.Onnx):
        about = {"form": "onnx", "units": policy.units, "tensors": dict(policy.tensors), "files": [add("model.onnx", policy.model)]}
    elif isinstance(policy, trained.Sb3):
        about = {"form": "sb3", "files": [add("model.zip", policy.model)]}
    elif isinstance(policy, trained.Weights):
        about = {"form": "native", "architecture": plain(policy.architecture), "observation_normalisation": plain(policy.observation_normalisation)}
        tensors = []
        for name, value in sorted(policy.tensors.items()):
            value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
            array = np.ascontiguousarray(value, "<f4")
            tensors.append([str(name), list(array.shape)])
            parts.append(array.tobytes())
        about["tensors"] = tensors
    else:
        raise Error(
            f"{what} is of the type `{type(policy).__qualname__}`",
            "return `runner.trained.Saved`, `Onnx`, `Sb3` or `Weights` (docs/guides/own-agents.md)",
        )
    with open(path, "wb") as file:
        file.write(json.dumps(about, allow_nan=False).encode() + b"\n")
        for part in parts:
            file.write(part)


def plain(value):
    """A value as JSON has it: arrays are lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


# The engine.


class Engine:
    """Requests to the engine. Between two of them passes at most the time limit."""

    def __init__(self, request, memory, control):
        self.request, self.control, self.limit = request, control, request["limit"]
        at, batch, spec = request["offsets"], request["num_envs"], request["spec"]
        self.choices = spec["choices"]
        components, width, mask = len(self.choices) or len(spec["actions"]), len(spec["observation"]), sum(self.choices)
        view = memoryview(memory)
        sizes = [4 * batch * components, 4 * batch * width, 4 * batch, batch, batch, 4 * batch * width, batch * mask]
        names = ["actions", "obs", "reward", "terminated", "truncated", "final_obs", "mask"]
        self.arrays = [view[at[name] : at[name] + size] for name, size in zip(names, sizes)]
        self.cancel_flag = view[at["cancelled"] : at["cancelled"] + 1]
        # Guards the socket: a request and its answer belong together.
        self.lock = threading.RLock()

    @property
    def cancelled(self):
        return self.cancel_flag[0] != 0

    def receive(self):
        limit(0)
        answer = self.control.recv(1)
        if not answer:
            # The engine has ended, or it has found an error that it reports itself.
            os._exit(1)
        limit(self.limit)
        return answer

    def tell(self, op, **values):
        """A request without an answer."""
        with self.lock:
            self.control.sendall(b"j" + json.dumps({"op": op, **values}, allow_nan=False).encode() + b"\n")
            limit(self.limit)

    def ask(self, op, **values):
        with self.lock:
            self.tell(op, **values)
            self.receive()
            return json.loads(read_line(self.control))

    def step(self):
        with self.lock:
            self.control.sendall(b"s")
            return self.receive() == b"d"


class Served:
    """The native part of a batch, as `runner._native.Env` has it."""

    def __init__(self, engine):
        spec, request = engine.request["spec"], engine.request
        self._engine = engine
        self.name, self.num_envs, self.observation_names = spec["name"], request["num_envs"], spec["observation"]
        self.action_kind, self.action_names = spec["kind"], spec["actions"]
        self.choices, self.bounds, self.masked = spec["choices"], spec["bounds"], spec["masked"]
        self.evaluation_episodes = request["evaluation_episodes"]
        # The steps of all environments together.
        self.steps, self.used = 0, False
        # The returns and lengths of the running episodes, for `runner.stable_baselines3`, which counts them.
        self.running = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)

    def buffers(self):
        return self._engine.arrays

    def reset(self, seed=None):
        self.used = True
        self._engine.ask("reset", seed=None if seed is None else int(seed))

    def step(self):
        self.used = True
        ended = self._engine.step()
        self.steps += self.num_envs
        return ended


class Context:
    """What `train/python` gives its function beside the environment: docs/guides/own-agents.md."""

    def __init__(self, engine, served):
        request = engine.request
        self._engine, self._served = engine, served
        self.seed, self.device, self.threads = request["seed"], request["device"], request["threads"]
        self.total_timesteps, self.until, self.params = request["total_timesteps"], request["until"], dict(request["kwargs"])
        self._scratch, self._interval, self._written = request["scratch"], request["checkpoint_interval"], time.monotonic()
        self._checkpoints = self._ends = False

    @property
    def steps(self):
        """Environment steps done so far, all environments together."""
        return self._served.steps

    @property
    def cancelled(self):
        """True after Ctrl-C. The next `checkpoint` is written, and ends the function."""
        return self._engine.cancelled

    def log(self, name, value, step=None):
        """Records a metric: of the environment steps done so far, or of `step`."""
        if not isinstance(name, str) or not name or not name.isprintable():
            raise Error(f"{name!r} is not the name of a metric", "write `ctx.log(\"losses/policy_loss\", value)`")
        try:
            value = value.item() if hasattr(value, "item") else value
        except (RuntimeError, TypeError, ValueError):
            # An array of several numbers, which is refused below.
            pass
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Error(f"the metric `{name}` is of the type `{type(value).__qualname__}`", "a metric is one number")
        step = self.steps if step is None else step
        self._engine.tell("log", name=name, value=float(value) if math.isfinite(value) else None, step=int(step))

    def progress(self, done, total=None, message=""):
        """Shows progress in other units than environment steps, which are shown without it."""
        self._engine.tell("progress", done=int(done), total=None if total is None else int(total), message=str(message))

    def checkpoint(self, state):
        """Writes the state, if it is time, together with the environments'. Returns whether it was written."""
        if not self._checkpoints:
            # After Ctrl-C, the engine waits for the next call. What cannot be saved is told at once, not after the first interval.
            self._checkpoints = True
            Packer().pack(state, "the state")
            self._engine.tell("checkpoints")
        cancelled = self.cancelled
        # A training that stops early is continued from its last checkpoint.
        stops = self.until < self.total_timesteps and self.steps >= self.until
        if not cancelled and not stops and time.monotonic() - self._written < self._interval:
            return False
        file = f"state.{os.getpid()}.tmp"
        write_state(os.path.join(self._scratch, file), {"state": state, "random": random_states()}, "the state")
        self._engine.ask("checkpoint", file=file)
        self._written = time.monotonic()
        if cancelled:
            raise Cancelled
        return True

    def resume(self):
        """The state of the last checkpoint, or `None`. The environments then stand where they were: `env.observe()` shows that."""
        if self._served.used:
            raise Error("`ctx.resume()` comes after the environment was used", "call it before the first `env.reset()`")
        answer = self._engine.ask("resume")
        if answer["file"] is None:
            return None
        saved = read_state(os.path.join(self._scratch, answer["file"]))
        self._served.steps, self._ends = answer["steps"], answer["ends"]
        for array, values in zip(self._served.running, (answer["returns"], answer["lengths"])):
            array[:] = values
        set_random_states(saved["random"])
        return saved["state"]

    @property
    def done(self):
        """True when the steps up to `until` are done, or validation has ended training early (`validation.patience`)."""
        return self._ends or self.steps >= self.until

    def validate(self, policy):
        """Validates a policy, if it is time: docs/guides/own-agents.md. Returns its figures, or `None`."""
        if not self._engine.ask("validate")["due"]:
            return None
        policy = policy() if callable(policy) else policy
        answer = self._engine.ask("judge", file=self._write(policy, "the policy that `ctx.validate` was given"))
        self._ends = answer["ends"]
        return answer["figures"]

    def _write(self, policy, what):
        file = f"policy.{os.getpid()}.tmp"
        write_policy(os.path.join(self._scratch, file), policy, what)
        return file


# The process.


def seed_all(seed, threads):
    """Seeds the global random numbers, also those of torch where it is installed."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed % 2**63)
        torch.set_num_threads(threads)


def load_packages():
    global gymnasium, np
    try:
        import gymnasium
        import numpy as np
    except ImportError as err:
        raise Refused(
            f"cannot import {err.name or 'gymnasium'}: {err}",
            f"install the packages: `{sys.executable} -m pip install gymnasium numpy`",
        ) from None
    if not hasattr(gymnasium.vector, "AutoresetMode"):
        raise Refused(f"Gymnasium {gymnasium.__version__} is too old", "install Gymnasium 1.1 or later")


def train(request, shared, control):
    load_packages()
    # What the function prints is a line of the stage's log at once.
    sys.stdout.reconfigure(line_buffering=True)
    global Error
    from runner import Error, gymnasium as adapter

    function = called(request["call"], "a policy")
    send(control, {"python": python_version(), "packages": installed_packages()})
    seed_all(request["seed"], request["threads"])
    engine = Engine(request, mmap.mmap(shared, request["size"]), control)
    served = Served(engine)
    ctx, env = Context(engine, served), adapter.VectorEnv._of(adapter._Batch(served), True)
    limit(engine.limit)
    try:
        returned = function(ctx, env, total_timesteps=request["total_timesteps"], **request["kwargs"])
        file = None if returned is None else ctx._write(returned, f"what `{request['call']}` returned")
    except Cancelled:
        os._exit(0)
    except Error as err:
        # One of this program's own, with its hint; the traceback has the place in the user's code.
        limit(0)
        send(control, {"message": f"`{request['call']}`: {err.message}", "hint": err.hint, "trace": trace_of(err)}, b"e")
        os._exit(1)
    except (Exception, SystemExit) as err:
        raise Raised(f"`{request['call']}` raised", err) from None
    engine.ask("done", file=file)
    sys.stdout.flush()
    # Threads of the function's own do not hold it up.
    os._exit(0)


main(train)
