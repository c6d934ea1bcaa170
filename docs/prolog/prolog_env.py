"""An environment whose rules are a program in Prolog: a SWI-Prolog beside the interpreter serves all of its environments, a line there and back a step."""

import functools
import subprocess
from pathlib import Path

import gymnasium as gym
import numpy as np

HERE = Path(__file__).parent
STATES, ATOMS = 21, 10  # the state and 20 successors, each of 10 atoms of a relation and two arguments


class Prolog:
    """A process of SWI-Prolog with these files, which answers requests of a line with a line."""

    def __init__(self, *files):
        command = ["swipl", "-q", "-g", "serve", "-t", "halt", *(str(HERE / file) for file in files)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.environments = 0

    def ask(self, request):
        self.process.stdin.write(request + ".\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"SWI-Prolog ended at `{request}`")
        return line


# Starting one takes longer than an episode.
prolog = functools.cache(Prolog)


class PrologEnv(gym.Env):
    """States, actions, rewards and ends are those of `world.pl`; an action is the number of a successor."""

    def __init__(self, facts, constants):
        self.prolog = prolog("world.pl", facts)
        self.name = f"env{self.prolog.environments}"
        self.prolog.environments += 1
        self.observation_space = gym.spaces.Box(0, constants, (STATES, ATOMS, 3), np.float32)
        self.action_space = gym.spaces.Discrete(STATES - 1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        drawn = self.np_random.integers(1 << 62)
        return self.observed(self.prolog.ask(f"start({self.name}, {drawn})"))[0], {}

    def step(self, action):
        observation, reward, end = self.observed(self.prolog.ask(f"step({self.name}, {action})"))
        return observation, reward, end == 1, end == 2, {}

    def action_masks(self):
        return np.arange(STATES - 1) < self.actions

    def observed(self, line):
        """`REWARD END ; STATE ; SUCCESSOR ; …`, each state as its numbers; an END is 1 for terminated, 2 for truncated."""
        head, *states = line.split(";")
        reward, end = head.split()
        self.actions = len(states) - 1
        observation = np.zeros((STATES, ATOMS * 3), np.float32)
        for row, state in zip(observation, states):
            numbers = state.split()
            row[: len(numbers)] = numbers
        return observation.reshape(STATES, ATOMS, 3), float(reward), int(end)


def make(facts="family.pl", constants=1000):
    """`constants` bounds the numbers of relations, constants and variables together."""
    return PrologEnv(facts, constants)
