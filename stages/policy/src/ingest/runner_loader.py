"""Loads the networks of stable-baselines3, sb3-contrib, CleanRL and TorchRL, and decides with them.

A network's numbers are read by `torch.load(weights_only=True)`. The zip files of stable-baselines3 name its class and their arguments in pickles: without `trust`, only names of classes of networks are read of them, and nothing is called.
"""

import base64
import importlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import torch

PLAIN = {"collections": {"OrderedDict"}, "builtins": {"dict", "list", "tuple", "set", "frozenset", "int", "float", "bool", "str", "type", "slice", "complex", "bytes"}}


class Names(pickle._Unpickler):
    """Reads plain data and the names of classes of networks; what would call something is refused."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        if name in PLAIN.get(module, ()):
            return getattr(importlib.import_module(module), name)
        root = module.split(".")[0]
        here = os.path.dirname(os.path.abspath(__file__))
        is_own = os.path.exists(os.path.join(here, root + ".py")) or os.path.isdir(os.path.join(here, root))
        if root not in ("torch", "stable_baselines3", "sb3_contrib") and not is_own:
            raise refused(f"names `{module}.{name}`")
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        if not (isinstance(value, type) and issubclass(value, (torch.nn.Module, torch.optim.Optimizer))):
            raise refused(f"names `{module}.{name}`, which is not a class of networks")
        return value


def calls(self):
    raise refused("calls a function")


for code in (pickle.REDUCE, pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.BUILD, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.PERSID, pickle.BINPERSID):
    Names.dispatch[code[0]] = calls


def refused(what):
    return ValueError(f"a pickle in the file {what}, and could run any program; write `trust: pickle` if you made the file yourself, or export the policy to ONNX")


def thawed(value, trust):
    """A value of the file's settings: JSON, or a pickle within it."""
    if not (isinstance(value, dict) and ":serialized:" in value):
        return value
    data = base64.b64decode(value[":serialized:"])
    if trust:
        import cloudpickle

        return cloudpickle.loads(data)
    return Names(io.BytesIO(data)).load()


def state_dict(file):
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError("the file is not a state dict of tensors alone; save `model.state_dict()`, or export the policy to ONNX") from None


def spaces(spec):
    """The spaces of Gymnasium of a specification."""
    from gymnasium import spaces

    action, n = spec["action"], len(spec["observation"])
    observation = spaces.Box(-np.inf, np.inf, (n,), np.float32)
    if action["kind"] == "discrete":
        return observation, spaces.Discrete(action["choices"][0])
    if "choices" in action:
        return observation, spaces.MultiDiscrete(action["choices"])
    return observation, spaces.Box(np.array(action["low"], np.float32), np.array(action["high"], np.float32))


def load_sb3(path, spec, trust):
    """The policy of a zip file of stable-baselines3 or sb3-contrib."""
    with zipfile.ZipFile(os.path.join(path, "model.zip")) as archive:
        data = json.loads(archive.read("data"))
        parameters = state_dict(io.BytesIO(archive.read("policy.pth")))
    policy_class = thawed(data["policy_class"], trust)
    arguments = thawed(data.get("policy_kwargs") or {}, trust)
    arguments.pop("optimizer_class", None), arguments.pop("optimizer_kwargs", None)
    if data.get("use_sde"):
        arguments["use_sde"] = True
    policy = policy_class(*spaces(spec), lambda _: 0.0, **arguments)
    policy.load_state_dict(parameters)
    policy.set_training_mode(False)
    return Sb3(policy, spec)


class Sb3:
    def __init__(self, policy, spec):
        self.policy, self.spec = policy, spec
        self.is_recurrent = hasattr(policy, "lstm_actor")
        self.is_masked = "Maskable" in type(policy).__name__

    def __call__(self, obs, masks=None, state=None, episode_start=None):
        policy, obs = self.policy, torch.as_tensor(obs)
        with torch.no_grad():
            if hasattr(policy, "q_net") or hasattr(policy, "quantile_net"):
                q = policy.q_net(obs) if hasattr(policy, "q_net") else policy.quantile_net(obs).mean(dim=1)
                return {"actions": np.where(masks, q.numpy(), -np.inf).argmax(axis=1)}
            if not hasattr(policy, "get_distribution"):
                action = policy._predict(obs, deterministic=True).numpy()
                return {"mean": policy.unscale_action(action) if policy.squash_output else action}
            if self.is_recurrent:
                return self.recurrent(obs, torch.as_tensor(state), torch.as_tensor(episode_start))
            distribution = policy.get_distribution(obs, action_masks=masks) if self.is_masked else policy.get_distribution(obs)
            return {**outputs(distribution), "value": policy.predict_values(obs)[:, 0]}

    def recurrent(self, obs, state, start):
        lstm = self.policy.lstm_actor
        shape = (2, lstm.num_layers, len(obs), lstm.hidden_size)
        h, c = state.reshape(len(obs), 2, lstm.num_layers, lstm.hidden_size).permute(1, 2, 0, 3).contiguous().reshape(shape)
        distribution, after = self.policy.get_distribution(obs, (h, c), start.float())
        after = torch.stack([after[0], after[1]]).permute(2, 0, 1, 3).reshape(len(obs), -1)
        return {**outputs(distribution), "state": after}


def outputs(distribution):
    """Logits, or means and standard deviations."""
    inner = getattr(distribution, "distribution", None) or getattr(distribution, "distributions", distribution)
    if isinstance(inner, (list, tuple)):
        return {"logits": torch.cat([one.logits for one in inner], dim=1)}
    if hasattr(inner, "logits"):
        return {"logits": inner.logits}
    if hasattr(inner, "mean") and hasattr(inner, "stddev"):
        return {"mean": inner.mean, "log_std": inner.stddev.log()}
    raise ValueError(f"a distribution of the type `{type(inner).__name__}` is not known")


def load_state_dict(path, spec, arguments, method, units, trust, **named):
    """A network of the user's class with the parameters of a state dict."""
    module, _, name = named["class"].partition(":")
    made = importlib.import_module(module)
    for part in name.split("."):
        made = getattr(made, part)
    network = made(**arguments)
    parameters = state_dict(os.path.join(path, "model.pt"))
    if not isinstance(network, torch.nn.Module):
        raise ValueError(f"`{named['class']}` gives a `{type(network).__name__}`, not a torch.nn.Module")
    if "state_dict" in parameters and isinstance(parameters["state_dict"], dict):
        parameters = parameters["state_dict"]
    network.load_state_dict(parameters)
    network.eval()
    return Network(network, spec, method, units)


class Network:
    def __init__(self, network, spec, method, units):
        self.network, self.action, self.units = network, spec["action"], units
        if method is None:
            method = next((name for name in ("actor", "actor_mean") if hasattr(network, name)), "forward")
        self.method = method
        self.decide = network if method == "forward" else getattr(network, method)

    def __call__(self, obs, masks=None):
        with torch.no_grad():
            said = self.decide(torch.as_tensor(obs))
        if self.method == "actor_mean" and hasattr(self.network, "actor_logstd"):
            said = (said, self.network.actor_logstd.expand_as(said).exp())
        return self.outputs(said)

    def outputs(self, said):
        if isinstance(said, dict):
            return said
        if isinstance(said, torch.distributions.Distribution) or hasattr(said, "logits"):
            return outputs(said)
        choices = "choices" in self.action
        if isinstance(said, (tuple, list)):
            first, second = said[0], said[1] if len(said) > 1 else None
            if isinstance(first, torch.distributions.Distribution):
                return outputs(first)
            # Means and standard deviations, as TorchRL's NormalParamExtractor gives them.
            if not choices and second is not None and second.shape == first.shape:
                return self.scaled(first, second.log())
            said = first
        if not choices:
            return self.scaled(said, None)
        return {"logits": said} if said.is_floating_point() else {"actions": said}

    def scaled(self, mean, log_std):
        """Means and deviations in the units of the environment."""
        low, high = (torch.tensor(self.action[end]) for end in ("low", "high"))
        if self.units == "tanh":
            mean, log_std = mean.tanh(), None
        if self.units != "environment":
            mean = low + (mean + 1) * (high - low) / 2
            log_std = None if log_std is None else log_std + ((high - low) / 2).log()
        return {"mean": mean} if log_std is None else {"mean": mean, "log_std": log_std}
