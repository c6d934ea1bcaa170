"""Steps a range of environments for `env/python`: one process of several, each with environments of its own. It follows `common.py`, and needs Gymnasium 1.0 or later.

After the answer to its request, each byte is a command: `s` a step, `r` the beginning of episodes, `p` a replay.
"""

import hashlib
import math
import mmap
import random
import struct

MOST_NUMBERS = 1_000_000
PROBED_STEPS = 64


def load_packages():
    global gymnasium, np, flatten
    try:
        import gymnasium
        import numpy as np
        from gymnasium.spaces.utils import flatten
    except ImportError as err:
        raise Refused(
            f"cannot import {err.name or 'gymnasium'}: {err}",
            f"install the packages: `{sys.executable} -m pip install gymnasium numpy`",
        ) from None
    if not hasattr(gymnasium.Env, "get_wrapper_attr"):
        raise Refused(f"Gymnasium {gymnasium.__version__} is too old", "install Gymnasium 1.0 or later")


# Spaces.


def observation_names(space, name):
    """The names of the elements of an observation, in the order in which `gymnasium.spaces.utils.flatten` puts them."""
    spaces = gymnasium.spaces
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [inner for key, one in items for inner in observation_names(one, f"{name}.{key}" if name else str(key))]
    name = name or "obs"
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        if not space.shape:
            return [name]
        if math.prod(space.shape) > MOST_NUMBERS:
            raise Refused(f"an observation has more than {MOST_NUMBERS} numbers", "wrap the environment so that it shows fewer")
        return [f"{name}[{','.join(map(str, at))}]" for at in np.ndindex(*space.shape)]
    if isinstance(space, spaces.Discrete):
        return [f"{name}={space.start + i}" for i in range(int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = np.asarray(space.nvec).reshape(-1)
        return [f"{name}[{k}]={i}" for k, n in enumerate(sizes) for i in range(int(n))]
    raise Refused(
        f"the observation space `{name}` is {type(space).__name__}, which is no fixed number of numbers",
        "Box, Discrete, MultiDiscrete and MultiBinary are read, and Dict and Tuple of them; "
        "wrap the environment: `gymnasium.wrappers.TransformObservation`",
    )


def action_spec(space):
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "choices": [int(space.n)], "start": [int(space.start)], "shape": [1]}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(getattr(space, "start", 0), space.shape).reshape(-1)
        return {
            "kind": "multi-discrete",
            "choices": [int(n) for n in np.asarray(space.nvec).reshape(-1)],
            "start": [int(n) for n in start],
            "shape": list(space.shape),
        }
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi-discrete", "choices": [2] * math.prod(space.shape), "shape": list(space.shape)}
    if isinstance(space, spaces.Box):
        if not np.issubdtype(space.dtype, np.floating):
            raise Refused(f"its actions are a Box of {space.dtype}", "use MultiDiscrete, or a Box of floating-point numbers")
        with np.errstate(over="ignore"):
            low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (space.low, space.high))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise Refused(
                "its actions are a Box without finite bounds",
                "give it a Box with finite `low` and `high`: "
                "`gymnasium.wrappers.TransformAction(env, lambda a: a, gymnasium.spaces.Box(-1, 1, env.action_space.shape))`",
            )
        if not (low < high).all():
            k = int(np.argmin(low < high))
            raise Refused(
                f"component {k} of its actions has no range: its Box goes from {low[k]:g} to {high[k]:g} in single precision",
                "leave a component of one value out of the action space, and add it in `step`: `gymnasium.wrappers.TransformAction`",
            )
        return {"kind": "continuous", "low": [float(x) for x in low], "high": [float(x) for x in high], "shape": list(space.shape)}
    raise Refused(
        f"its action space is {type(space).__name__}",
        "Discrete, MultiDiscrete, MultiBinary and Box are taken; wrap the environment: `gymnasium.wrappers.TransformAction`",
    )


def mask_function(env):
    """The environment's `action_masks`, the name that sb3-contrib gave it, if it has one."""
    try:
        return env.get_wrapper_attr("action_masks")
    except AttributeError:
        return None


def spec_of(env):
    action = action_spec(env.action_space)
    has_mask = action["kind"] != "continuous" and mask_function(env) is not None
    limit = env.spec.max_episode_steps if env.spec is not None else None
    return {
        "observation": observation_names(env.observation_space, ""),
        "action": action,
        "masked": has_mask,
        "max_episode_steps": None if limit is None else int(limit),
    }


def written(spec, name):
    """The specification in the engine's form, as artifacts have it."""
    action = spec["action"]
    kind, choices = action["kind"], action.get("choices")
    count = len(choices or action["low"])
    start = action.get("start", [0])
    actions = [str(start[0] + choice) for choice in range(choices[0])] if kind == "discrete" else [f"action[{k}]" for k in range(count)]
    out = {"name": name, "observation": spec["observation"], "actions": actions, "masked": spec["masked"], "normalisation": None}
    if kind == "multi-discrete":
        out["choices"] = choices
    if kind == "continuous":
        out["bounds"] = {"low": action["low"], "high": action["high"]}
    if any(start):
        out["start"] = start
    if action["shape"] != [count] and kind != "discrete":
        out["shape"] = action["shape"]
    return out


# Environments.


def builder(made):
    """The function that makes one environment, and its name."""
    name, kwargs = made["name"], made["kwargs"]
    if made["call"] is None:
        return functools.partial(gymnasium.make, name, disable_env_checker=True, **kwargs), name
    return functools.partial(called(name, "a gymnasium.Env"), **kwargs), name


def make(build, name):
    env = inside(f"`{name}` cannot be made", build)
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise Refused(
            f"`{name}` is a VectorEnv, whose environments share a seed and start again one step late",
            "return one environment: the engine makes as many as training asks for, and steps them in several processes",
        )
    if not isinstance(env, gymnasium.Env):
        raise Refused(f"`{name}` gave a value of the type `{type(env).__qualname__}`", "return a `gymnasium.Env`")
    return env


def seed_of(seed, split, i, episode):
    """The seed of an episode: 31 bits, which any generator takes."""
    digest = hashlib.blake2b(struct.pack("<4Q", seed, split, i, episode), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


class Reader:
    """From observations and masks to rows of numbers, and from numbers to actions."""

    def __init__(self, env):
        spaces = gymnasium.spaces
        self.observed, self.acted = env.observation_space, env.action_space
        self.is_box = isinstance(self.observed, spaces.Box)
        self.start = getattr(self.acted, "start", 0)
        self.is_discrete = isinstance(self.acted, spaces.Discrete)
        self.is_multi = isinstance(self.acted, spaces.MultiDiscrete)
        self.shape = self.observed.shape

    def observe(self, row, obs):
        if self.is_box:
            if getattr(obs, "shape", None) != self.shape:
                obs = np.asarray(obs)
                if obs.shape != self.shape:
                    raise Refused(f"an observation has the shape {obs.shape}, and its space {self.shape}")
            row[:] = obs if obs.ndim == 1 else obs.reshape(-1)
        else:
            row[:] = flatten(self.observed, obs)

    def actions(self, numbers):
        """The actions of rows of numbers."""
        if self.is_discrete:
            start = int(self.start)
            return [number + start for number in numbers[:, 0].tolist()]
        values = numbers.astype(self.acted.dtype).reshape(-1, *self.acted.shape)
        return list(values + self.start if self.is_multi else values)

    def mask(self, row, function):
        mask = np.asarray(function(), dtype=bool).reshape(-1)
        if mask.shape != row.shape:
            raise Refused(f"`action_masks()` has {mask.size} elements, and there are {row.size} choices")
        row[:] = mask


class Range:
    """Some environments of a batch, and their parts of the shared arrays."""

    def __init__(self, request, memory):
        self.first, self.count, self.limit = request["first"], request["count"], request["limit"]
        self.seed, self.split = request["seed"], request["split"]
        build, self.name = builder(request["made"])
        self.envs = [make(build, self.name) for _ in range(self.count)]
        self.spec = spec_of(self.envs[0])
        self.reader = Reader(self.envs[0])
        self.masks = [mask_function(env) for env in self.envs] if self.spec["masked"] else None
        at, batch, rows = request["offsets"], request["batch"], slice(self.first, self.first + self.count)

        def array(name, kind, width=None):
            shape = (batch,) if width is None else (batch, width)
            return np.ndarray(shape, kind, buffer=memory, offset=at[name])[rows]

        width = len(self.spec["observation"])
        action = self.spec["action"]
        choices = action.get("choices")
        components = len(choices) if choices else len(action["low"])
        if (width, components) != (request["width"], request["components"]):
            # The engine says what differs.
            return
        self.actions = array("actions", np.uint32 if choices else np.float32, components)
        self.obs = array("obs", np.float32, width)
        self.rows = list(self.obs)
        self.final_obs = array("final_obs", np.float32, width)
        self.reward = array("reward", np.float32)
        self.terminated = array("terminated", np.bool_)
        self.truncated = array("truncated", np.bool_)
        self.mask = array("mask", np.bool_, sum(choices)) if choices else None
        # The first choice of each component.
        self.components = np.cumsum([0, *choices[:-1]]) if choices else None
        self.episodes = array("episodes", np.uint64)
        self.own_episodes = [0] * self.count

    def start(self, j):
        """Begins the episode of environment j: its state depends on the seed of the episode alone, as far as `reset(seed=…)` sets it."""
        obs, _ = self.envs[j].reset(seed=seed_of(self.seed, self.split, self.first + j, self.own_episodes[j]))
        self.reader.observe(self.rows[j], obs)

    def show_masks(self):
        if self.masks is not None:
            for row, function in zip(self.mask, self.masks):
                self.reader.mask(row, function)
            lacking = ~np.logical_or.reduceat(self.mask, self.components, axis=1).all(axis=1)
            if lacking.any():
                raise Refused(f"`action_masks()` of environment {self.first + int(np.argmax(lacking))} allows no choice")

    def check(self, rows, what, first=0):
        if not np.isfinite(rows).all():
            j = first + int(np.argwhere(~np.isfinite(rows))[0][0])
            raise Refused(f"{what} of environment {self.first + j} of `{self.name}` is not finite")

    def reset(self):
        self.own_episodes = [int(episode) for episode in self.episodes]
        with self.calls() as at:
            for j in range(self.count):
                at.j = j
                self.start(j)
            self.show_masks()
        self.check(self.obs, "the observation")

    def step(self):
        observe, rows, rewards = self.reader.observe, self.rows, []
        self.terminated[:] = self.truncated[:] = False
        with self.calls() as at:
            actions = self.reader.actions(self.actions)
            for j, env in enumerate(self.envs):
                at.j = j
                seen, reward, ends, cut, _ = env.step(actions[j])
                rewards.append(float(reward))
                if ends or cut:
                    # An episode that ends in its last step is not cut off.
                    self.terminated[j], self.truncated[j] = ends, not ends
                    observe(self.final_obs[j], seen)
                    self.check(self.final_obs[j : j + 1], "the last observation", j)
                    self.own_episodes[j] += 1
                    self.start(j)
                else:
                    observe(rows[j], seen)
            self.show_masks()
        self.reward[:] = rewards
        self.check(self.obs, "the observation")
        self.check(self.reward, "the reward")

    def replay(self, journal):
        """Takes each environment to where it was after the actions of its episode: `[steps u64][actions u32]` for each."""
        self.own_episodes = [int(episode) for episode in self.episodes]
        components, kind, offset = self.actions.shape[1], self.actions.dtype, 0
        with self.calls() as at:
            for j, env in enumerate(self.envs):
                at.j = j
                (steps,) = struct.unpack_from("<Q", journal, offset)
                offset += 8
                self.start(j)
                for _ in range(steps):
                    limit(self.limit)
                    numbers = np.frombuffer(journal, kind, components, offset).reshape(1, -1)
                    offset += 4 * components
                    seen, _, ends, cut, _ = env.step(self.reader.actions(numbers)[0])
                    self.reader.observe(self.obs[j], seen)
                    if ends or cut:
                        raise Refused(*unrepeatable(self.first + j))
            self.show_masks()

    def calls(self):
        return Calls(self)


def unrepeatable(i):
    return (
        f"environment {i} does not come back to its state by the seed and the actions of its episode: the episode ends sooner",
        "to go on from a checkpoint, its state must depend on `reset(seed=…)` and the actions since alone: draw from `self.np_random` and keep nothing from "
        "episode to episode; `--force` trains from the beginning",
    )


class Calls:
    """Names the environment that raises."""

    def __init__(self, owner):
        self.owner, self.j = owner, 0

    def __enter__(self):
        return self

    def __exit__(self, kind, err, _):
        if isinstance(err, (Exception, SystemExit)) and not isinstance(err, (Refused, Raised)):
            raise Raised(f"environment {self.owner.first + self.j} of `{self.owner.name}` raised", err) from None


# The specification, with a trial of what training relies on.


def global_state():
    name, keys, *rest = np.random.get_state()
    return name, keys.tobytes(), rest, random.getstate()


def probe(build, name):
    """The specification, and warnings: two environments with the same seed and actions must go the same way."""
    first, second = make(build, name), make(build, name)
    spec, reader = spec_of(first), Reader(first)
    rows = [np.zeros(len(spec["observation"]), np.float32) for _ in range(2)]
    mask = np.ones(sum(spec["action"].get("choices", [])), bool)
    draw = np.random.default_rng(1)
    warnings = []
    before = global_state()

    def differ(step):
        if rows[0].tobytes() == rows[1].tobytes():
            return False
        warnings.append(
            [
                f"two environments of `{name}` with the same seed and actions differ at step {step}",
                "a training of it cannot be repeated, nor go on from a checkpoint: draw random numbers from `self.np_random` alone",
            ]
        )
        return True

    def trial():
        for env, row in zip((first, second), rows):
            reader.observe(row, env.reset(seed=1)[0])
            if not np.isfinite(row).all():
                raise Refused(f"the first observation of `{name}` is not finite")
        if differ(0):
            return
        for step in range(1, PROBED_STEPS + 1):
            if spec["masked"]:
                reader.mask(mask, mask_function(first))
            numbers, over = random_action(spec["action"], mask, draw), False
            for env, row in zip((first, second), rows):
                seen, reward, ends, cut, _ = env.step(reader.actions(numbers.reshape(1, -1))[0])
                reader.observe(row, seen)
                if not (np.isfinite(row).all() and math.isfinite(reward)):
                    raise Refused(f"the observation or the reward of `{name}` at step {step} is not finite")
                over = over or ends or cut
            if differ(step):
                return
            if over:
                for env, row in zip((first, second), rows):
                    reader.observe(row, env.reset(seed=1 + step)[0])

    inside(f"`{name}` raised", trial)
    if global_state() != before:
        warnings.append(
            [
                f"`{name}` draws from the global random numbers of Python or NumPy, which all environments of a process share",
                "its results depend on the number of threads: draw from `self.np_random`, which `reset(seed=…)` seeds",
            ]
        )
    for env in (first, second):
        env.close()
    return spec, warnings


def random_action(action, mask, draw):
    if action["kind"] == "continuous":
        return draw.uniform(action["low"], action["high"]).astype(np.float32)
    numbers, at = [], 0
    for choices in action["choices"]:
        allowed = np.flatnonzero(mask[at : at + choices])
        if not allowed.size:
            raise Refused("`action_masks()` allows no choice", "let it allow one at least")
        numbers.append(draw.choice(allowed))
        at += choices
    return np.array(numbers, np.uint32)


def serve(request, memory, control):
    envs = Range(request, memory)
    answer = {"python": python_version(), "packages": installed_packages() if envs.first == 0 else None, "spec": written(envs.spec, envs.name)}
    send(control, answer)
    while True:
        limit(0)
        command = control.recv(1)
        limit(envs.limit)
        if command == b"s":
            envs.step()
        elif command == b"r":
            envs.reset()
        elif command == b"p":
            (count,) = struct.unpack("<Q", read_bytes(control, 8))
            envs.replay(read_bytes(control, count))
        else:
            for env in envs.envs:
                env.close()
            os._exit(0)
        control.sendall(b"k")


def carry_out(request, shared, control):
    load_packages()
    if request["mode"] == "spec":
        build, name = builder(request["made"])
        spec, warnings = probe(build, name)
        answer = {"python": python_version(), "packages": installed_packages(), "warnings": warnings}
        send(control, answer | {"spec": written(spec, name), "max_episode_steps": spec["max_episode_steps"]})
    else:
        serve(request, mmap.mmap(shared, request["size"]), control)


main(carry_out)
