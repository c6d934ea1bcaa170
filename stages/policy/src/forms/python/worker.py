"""Answers batches of observations by a user's policy. It follows `common.py` of `stages_env`, and needs NumPy.

The answer to its request is the versions; `l` then loads the policy, later another one of the same program (with its seed), and each `a` is a batch that lies in shared memory, where its answer is written.
"""

import mmap
import pathlib
import random
import types

ACTIONS, LOGITS, MEAN = 1, 2, 3
GIVEN = ("masks", "state", "episode_start")
NUMBERS = {"actions", "logits", "mean", "log_std", "value", "state"}


def refuse_pickles(event, args):
    """An audit hook: a pickle that names a function or a class can run any program. It holds for every reader of pickles, whatever a file is called."""
    if event == "pickle.find_class":
        raise Refused(
            f"a file of the policy is a pickle, which names `{args[0]}.{args[1]}` and could run any program",
            "save numbers: a state dict for `torch.load(…, weights_only=True)`, safetensors, `.npz`; or write `trust: pickle` if you made the file yourself",
        )


def entrance(call, root):
    """The function `module:function` of a module of the project."""
    function = called(call, "the policy")
    module, _, attribute = call.partition(":")
    value = sys.modules[module]
    if not is_below(getattr(value, "__file__", None), root):
        raise Refused(f"`{module}` is not a module of the policy's project", "name a function of a module of your own")
    for part in attribute.split("."):
        value = getattr(value, part)
        if isinstance(value, types.ModuleType):
            raise Refused(f"`{call}` goes through the module `{value.__name__}`", "name a function of a module of your own")
    return function


def keywords(function):
    """The names among `GIVEN` and `allowed` that a function takes."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return (*GIVEN, "allowed")
    return tuple(name for name in (*GIVEN, "allowed") if name in parameters)


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


class Player:
    """A policy, and its arrays."""

    def __init__(self, request, memory):
        made = request["policy"]
        self.call = made.get("load") or made["call"]
        self.spec, self.width, self.batch = request["spec"], made["state_len"], request["batch"]
        self.is_single = made.get("per") == "snapshot"
        action = self.spec["action"]
        self.names, self.kind = action["names"], action["kind"]
        self.choices = action.get("choices")
        self.outputs = sum(self.choices) if self.choices else len(self.names)
        # The first output of each component.
        self.first = np.cumsum([0, *self.choices[:-1]]) if self.choices else None
        at, batch = request["offsets"], self.batch

        def array(name, kind, width=None):
            shape = (batch,) if width is None else (batch, width)
            return np.ndarray(shape, kind, buffer=memory, offset=at[name])

        self.obs = array("obs", np.float32, len(self.spec["observation"]))
        self.masks = array("masks", np.bool_, self.outputs) if self.choices else None
        self.starts = array("starts", np.bool_)
        self.state = array("state", np.float32, self.width)
        # Actions as choices, logits, means or, where they are reals, actions.
        self.chosen = array("outputs", np.uint32, len(self.names if self.kind != "discrete" else [0]))
        self.said = array("outputs", np.float32, self.outputs)
        self.log_std = array("log_std", np.float32, self.outputs)
        self.value = array("value", np.float32)
        # What of it was said: the kind of the outputs, log_std, value.
        self.about = np.ndarray(3, np.uint8, buffer=memory, offset=at["about"])

    def load(self, request):
        made = request["policy"]
        seed_all(request["seed"])
        function = entrance(self.call, request["root"])
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(request["threads"])
        seed_all(request["seed"])
        if made.get("load"):
            function = inside(f"`{self.call}` raised", function, pathlib.Path(request["weights"]), self.spec, **made["kwargs"])
            if not callable(function):
                raise Refused(f"`{self.call}` returned a value of the type `{type(function).__qualname__}`", "return a function: `policy(obs, …)`")
        elif made["kwargs"]:
            function = functools.partial(function, **made["kwargs"])
        self.function, self.is_torch = function, False
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_grad_enabled(False)
            torch.set_num_threads(request["threads"])
            if isinstance(function, torch.nn.Module):
                function.eval()
                self.is_torch = True
        takes = keywords(function.forward if self.is_torch else function)
        self.takes = [name for name in takes if name != "state" or self.width]

    def step(self):
        # Copies: a policy may keep what it was given.
        given = {"masks": None if self.masks is None else self.masks.copy(), "state": self.state.copy(), "episode_start": self.starts.copy()}
        if self.is_single:
            self.write(self.decided(given))
            return
        obs = self.obs.copy()
        given = {name: given[name] for name in self.takes if name != "allowed"}
        if self.is_torch:
            tensor = sys.modules["torch"].from_numpy
            obs, given = tensor(obs), {name: None if value is None else tensor(value) for name, value in given.items()}
        self.write(inside(f"the policy `{self.call}` raised", self.function, obs, **given))

    # One snapshot at a time.

    def decided(self, given):
        """The actions, and the states, of a function that decides for one environment."""
        rows, by = self.obs.astype(np.float64), self.spec["normalisation"]
        if by is not None:
            rows = rows * np.array(by["scale"]) + np.array(by["offset"])
        names, actions, states = self.spec["observation"], [], []
        for i, row in enumerate(rows.tolist()):
            one = {}
            for name in self.takes:
                if name == "allowed":
                    one[name] = self.allowed(i)
                elif name == "episode_start":
                    one[name] = bool(self.starts[i])
                else:
                    one[name] = None if given[name] is None else given[name][i]
            said = inside(f"the policy `{self.call}` raised for environment {i}", self.function, dict(zip(names, row)), **one)
            if self.width:
                if not (isinstance(said, tuple) and len(said) == 2):
                    raise Refused("the policy has a state, and returned none", "return `(action, state)`")
                said, state = said
                states.append(self.numbers("state", state, np.float32, (self.width,)))
            actions.append(self.action(said, i))
        return {"actions": actions, "state": states} if self.width else {"actions": actions}

    def allowed(self, i):
        """The choices that are allowed: by name, and of several components by number."""
        if self.choices is None:
            return None
        if self.kind == "discrete":
            return [name for name, mask in zip(self.names, self.masks[i]) if mask]
        rows = [np.flatnonzero(self.masks[i, at : at + n]).tolist() for at, n in zip(self.first, self.choices)]
        return dict(zip(self.names, rows))

    def action(self, said, i):
        """The numbers of an action: of a choice by its name, of one number, or of a dictionary by component."""
        place = f"what the policy returned for environment {i}"
        if self.kind == "discrete":
            if isinstance(said, str):
                if said not in self.names:
                    raise Refused(f"{place} is `{said}`, which is not a choice", f"the choices are {', '.join(self.names)}")
                return [self.names.index(said)]
            return [said]
        if isinstance(said, dict):
            for name in said:
                if name not in self.names:
                    raise Refused(f"{place} has `{name}`, which is not a component", f"the components are {', '.join(self.names)}")
            for name in self.names:
                if name not in said:
                    raise Refused(f"{place} lacks the component `{name}`", f"the components are {', '.join(self.names)}")
            return [said[name] for name in self.names]
        return [said] if np.ndim(said) == 0 else said

    # What it says.

    def write(self, said):
        """Checks what the policy returned, and writes it."""
        state = None
        if isinstance(said, tuple):
            if len(said) != 2:
                raise Refused(f"the policy returned {len(said)} values", "return actions, `(actions, state)`, or a dictionary")
            said, state = said
        if not isinstance(said, dict):
            said = {"actions": said}
        if state is not None:
            said = {**said, "state": state}
        said = {name: value for name, value in said.items() if value is not None}
        for name in said:
            if name not in NUMBERS:
                raise Refused(f"the policy returned `{name}`", f"known are {', '.join(sorted(NUMBERS))}")
        kinds = [name for name in ("actions", "logits", "mean") if name in said]
        if len(kinds) != 1:
            found = " and ".join(f"`{name}`" for name in kinds) or "no actions"
            raise Refused(f"the policy returned {found}", "return one of `actions`, `logits` (of choices) and `mean` (of reals)")
        if "log_std" in said and kinds != ["mean"]:
            raise Refused("the policy returned `log_std` without `mean`", "return both, or actions alone")
        if ("logits" in said) != (self.choices is not None) and kinds != ["actions"]:
            raise Refused(f"the policy returned `{kinds[0]}`, and its actions are {self.kind}", "choices have `logits`, reals have `mean`")
        if (self.width > 0) != ("state" in said):
            found = f"has `state_len: {self.width}`, and returned " + ("a state" if "state" in said else "no state")
            raise Refused(f"the policy {found}", "`state_len` is the number of floats that it remembers of an environment")
        batch, value = self.batch, said[kinds[0]]
        if self.choices is not None and kinds == ["actions"]:
            self.chosen[:] = self.checked(self.numbers("actions", value, np.int64, self.chosen.shape))
        elif self.choices is not None:
            self.said[:] = self.masked(self.numbers("logits", value, np.float32, (batch, self.outputs), least=True))
        else:
            self.said[:] = self.numbers(kinds[0], value, np.float32, (batch, self.outputs))
        # Reals that are not drawn are a mean alone.
        self.about[:] = (MEAN if self.choices is None else LOGITS if kinds == ["logits"] else ACTIONS, "log_std" in said, "value" in said)
        if "log_std" in said:
            whole = np.shape(said["log_std"]) != (self.outputs,) or batch == 1
            self.log_std[:] = self.numbers("log_std", said["log_std"], np.float32, (batch, self.outputs) if whole else (self.outputs,))
        if "value" in said:
            self.value[:] = self.numbers("value", said["value"], np.float32, (batch,))
        if self.width:
            self.state[:] = self.numbers("state", said["state"], np.float32, (batch, self.width))

    def numbers(self, name, value, kind, shape, least=False):
        """An array of finite numbers of a shape; dimensions of 1 may be more or fewer. `least` allows minus infinity."""
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = value.numpy() if kind is np.int64 else value.float().numpy()
        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as err:
            raise Refused(f"`{name}` of the policy is not an array: {err}") from None
        if array.dtype.kind not in ("iub" if kind is np.int64 else "fiub"):
            hint = "return choices as integers, or `{'logits': …}`" if kind is np.int64 else "return an array of numbers"
            raise Refused(f"`{name}` of the policy has the type {array.dtype}", hint)
        if array.shape != shape:
            if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
                raise Refused(f"`{name}` of the policy has the shape {list(array.shape)} instead of {list(shape)}")
            array = array.reshape(shape)
        if kind is np.int64:
            return array.astype(np.int64)
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        finite = np.isfinite(array)
        if not (finite.all() or least and (finite | (array == -np.inf)).all()):
            at = np.argwhere(~finite)[0]
            place = "".join(f"[{i}]" for i in at)
            raise Refused(f"`{name}{place}` of the policy is {array[tuple(at)]}", "the first index is the environment's")
        return array

    def checked(self, actions):
        """Choices that exist and are allowed."""
        choices = np.array(self.choices)
        wrong = (actions < 0) | (actions >= choices)
        if wrong.any():
            i, k = np.argwhere(wrong)[0]
            raise Refused(f"the policy chose {actions[i, k]} of `{self.component(k)}` in environment {i}, which has {choices[k]} choices")
        allowed = np.take_along_axis(self.masks, actions + self.first, axis=1)
        if not allowed.all():
            i, k = np.argwhere(~allowed)[0]
            choice = f"`{self.names[actions[i, 0]]}`" if self.kind == "discrete" else f"{actions[i, k]} of `{self.component(k)}`"
            raise Refused(
                f"the policy chose {choice} in environment {i}, which is masked there",
                "take `masks` (`allowed` of one snapshot) as an argument, or return logits, which are masked",
            )
        return actions

    def masked(self, logits):
        """Logits with a finite one among the allowed choices of each component."""
        most = np.maximum.reduceat(np.where(self.masks, logits, -np.inf), self.first, axis=1)
        if not np.isfinite(most).all():
            i, k = np.argwhere(~np.isfinite(most))[0]
            raise Refused(f"the logits of `{self.component(k)}` in environment {i} leave no choice that is allowed")
        return logits

    def component(self, k):
        return "the action" if self.kind == "discrete" else self.names[k]


def carry_out(request, shared, control):
    global np
    try:
        import numpy as np
    except ImportError as err:
        raise Refused(f"cannot import numpy: {err}", f"install it: `{sys.executable} -m pip install numpy`") from None
    own = os.getpid()
    send(control, {"python": python_version(), "packages": installed_packages()})
    if read_bytes(control, 1) != b"l":
        os._exit(0)
    if request["policy"].get("trust") != "pickle":
        sys.addaudithook(refuse_pickles)
    player = Player(request, mmap.mmap(shared, request["size"]))
    player.load(request)
    while True:
        # A copy of this process, which a policy forked, does not answer.
        if os.getpid() != own:
            os._exit(1)
        control.sendall(b"k")
        limit(0)
        command = control.recv(1)
        limit(request["limit"])
        if command == b"a":
            player.step()
        elif command == b"l":
            # Other files, of the same program.
            request["seed"] = request["spec"]["seed"] = int.from_bytes(read_bytes(control, 8), "little")
            player.load(request)
        else:
            os._exit(0)


main(carry_out)
