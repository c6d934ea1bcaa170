"""Reads a policy that `runner policy export --format safetensors|numpy` wrote, with NumPy alone.

`Policy(path)`; for each step `policy.action(policy.outputs(obs, episode_start), mask)` is what the environment takes.

Both formats hold the tensors below in float32, and a JSON text: the metadata entry `runner` of safetensors, the array `about` of .npz. The text has
`format` (1), `kind` (the stage kind that trained it), `architecture`, `env` and `observation_normalisation`.

    architecture                obs_dim (D), num_actions (A, or the components of a continuous action), choices (of each component of a multi-discrete
                                action), continuous, head, activation (tanh or relu), lstm (hidden, layers, critic),
                                transformer (window, d_model, n_heads, n_layers, d_ff), and the sizes of the hidden layers, pi and vf
    head                        absent: logits, or means in the environment's units; scaled_gaussian; and of actors and action values without a critic
                                squashed_gaussian, deterministic, or q_values (with dueling)
    env                         names of observations and actions, whether choices are masked, its own normalisation; bounds (low and high [A]) of
                                continuous actions; start, the number of the first choice of each component, where one is not 0; shape, where it is
                                not [K]
    observation_normalisation   offset [D], scale [D] and clip, or null: clip((x - offset) / scale, -clip, clip)

A policy takes observations as the environment gives them, with the environment's own normalisation applied. Logits of masked choices are minus infinity.
Means without a head are held to the bounds. With scaled_gaussian -1 stands for the lower bound and 1 for the upper one; squashed_gaussian and
deterministic take the hyperbolic tangent of the first A outputs first. Components with a bound beyond 1e30 are not scaled.

A weight is [inputs, outputs], row-major: a layer is x @ weight + bias. In the table d is d_model, W the window, H the hidden size of the LSTM:

    actor_lstm.weight_x, .weight_h, .bias      [D, 4H], [H, 4H], [4H]; gates input, forget, cell, output as PyTorch has them (its weight_ih is weight_x
                                               transposed, the one bias the sum of its two): c' = f c + i g, h' = o tanh c'
    actor_lstm.1.weight_x, ...                 the layers above the first
    critic_lstm..., or critic.weight, .bias    the critic's LSTM (critic: separate) or linear layer (linear); with shared neither
    embed.weight, .bias                        [D, d]: the first layer of a transformer
    block.I.norm.weight, .bias                 [d]: layer norm before attention, epsilon 1e-5
    block.I.query.weight, .bias                [d, d]; head n has columns n d / heads and on
    block.I.key_value.weight                   [d, 2d]: keys, then values
    block.I.position                           [W, d]: row j is added to the key of j steps ago; a step sees the last W steps of its episode, itself
                                               among them
    block.I.output.weight, .bias               [d, d]: after attention, rectified
    block.I.gate.{rz_y,rz_x,h_y,h_x}.weight    [d, 2d] twice, [d, d] twice; .bias [d]: the GRU gate that mixes y into x
    block.I.{ff_norm,ff_in,ff_out,ff_gate}     layer norm, [d, d_ff], [d_ff, d], and a gate
    pi.I.weight, .bias                         hidden layers of the actor, each followed by the activation
    action.weight, .bias                       [_, A]: logits or means; of squashed_gaussian [_, 2A], means, then logarithms of standard deviations
    q.weight, .bias                            [_, A], or of a duelling network [_, A + 1]: advantages, then the value of the state
    vf.I.weight, value.weight, ...             hidden layers and output of the critic, in the units of training
    log_std                                    [A]: logarithms of the standard deviations of continuous actions
    embedding.tokens                           [V, E]: tokens of symbolic states; row 0 is padding, which is left out
    embedding.{state,candidate}.places, .bias  [W, E], [E]: the weights of an atom's places, where atoms are learned or linear

Policies over symbolic states (`head: candidates`, with tokens V, width W, atoms and pooling; num_actions is E, env.actions the tokens) are not read here.
An atom of the tokens t_0, t_1, ... is x = bias + sum_j places[j] * tokens[t_j], and tanh x where atoms are learned; with transe it is
tokens[t_0] + tokens[t_1] - tokens[t_2] + ... A state or a candidate is the sum or mean of its atoms. The state goes through the LSTM, where there is one,
and pi to action (E outputs); the logit of a candidate is its dot product with these, over the root of E.
"""

import json
import numpy as np

class Policy:
    def __init__(self, path):
        if path.endswith(".npz"):
            self.t = dict(np.load(path)); about = bytes(self.t.pop("about"))
        else:
            raw = open(path, "rb").read(); n = 8 + int.from_bytes(raw[:8], "little")
            head = json.loads(raw[8:n]); about = head.pop("__metadata__")["runner"]
            self.t = {k: np.frombuffer(raw[n + v["data_offsets"][0]:n + v["data_offsets"][1]], "<f4").reshape(v["shape"]) for k, v in head.items()}
        self.about = json.loads(about); self.net = self.about["architecture"]; self.state = {}
    def dense(self, name, x): return x @ self.t[name + ".weight"] + self.t.get(name + ".bias", 0)
    def lstm(self, name, x):
        h, c = self.state.get(name, np.zeros((2, self.net["lstm"]["hidden"]), "f4"))
        i, f, g, o = np.split(x @ self.t[name + ".weight_x"] + h @ self.t[name + ".weight_h"] + self.t[name + ".bias"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g); self.state[name] = (sigmoid(o) * np.tanh(c), c)
        return self.state[name][0]
    def norm(self, name, x): return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * self.t[name + ".weight"] + self.t[name + ".bias"]
    def gate(self, name, x, y):
        w = lambda part: self.t[f"{name}.{part}.weight"]
        r, z = np.split(y @ w("rz_y") + x @ w("rz_x"), 2); z = sigmoid(z - self.t[name + ".bias"])
        return x + z * (np.tanh(y @ w("h_y") + (sigmoid(r) * x) @ w("h_x")) - x)
    def attend(self, b, x, tf):
        past = self.state[b] = ([self.dense(b + ".key_value", x)] + self.state.get(b, []))[:tf["window"]]
        split = lambda rows: rows.reshape(len(rows), tf["n_heads"], -1); k, v = np.split(np.array(past), 2, axis=1)
        q = split(self.dense(b + ".query", x)[None])[0]; k = split(k + self.t[b + ".position"][:len(past)])
        s = np.einsum("hc,shc->hs", q, k) / q.shape[1] ** 0.5; p = np.exp(s - s.max(1, keepdims=True))
        return np.einsum("hs,shc->hc", p / p.sum(1, keepdims=True), split(v)).ravel()
    def outputs(self, obs, episode_start):
        """The last layer of the actor: logits, means, or action values."""
        if episode_start: self.state = {}
        x, n, tf = np.asarray(obs, "f4"), self.about["observation_normalisation"], self.net.get("transformer")
        if n: x = np.clip((x - np.array(n["offset"], "f4")) / np.array(n["scale"], "f4"), -n["clip"], n["clip"])
        for i in range((self.net["lstm"] or {}).get("layers", 1) if self.net["lstm"] else 0): x = self.lstm("actor_lstm" + f".{i}" * (i > 0), x)
        if tf: x = self.dense("embed", x)
        for b in [f"block.{i}" for i in range(tf["n_layers"] if tf else 0)]:
            x = self.gate(b + ".gate", x, relu(self.dense(b + ".output", self.attend(b, self.norm(b + ".norm", x), tf))))
            x = self.gate(b + ".ff_gate", x, relu(self.dense(b + ".ff_out", relu(self.dense(b + ".ff_in", self.norm(b + ".ff_norm", x))))))
        for i in range(len(self.net["pi"])): x = (np.tanh if self.net["activation"] == "tanh" else relu)(self.dense(f"pi.{i}", x))
        return self.dense("action" if "action.weight" in self.t else "q", x)
    def action(self, out, mask=None):
        """The action that the environment takes, from the outputs: the likeliest choices, or the mean."""
        head, env, a = self.net.get("head"), self.about["env"], self.net["num_actions"]
        if self.net.get("continuous"):
            low, high = (np.array(env["bounds"][end], "f4") for end in ("low", "high"))
            out = out[:a] if head in (None, "scaled_gaussian") else np.tanh(out[:a])
            near = (abs(low) < 1e30) & (abs(high) < 1e30) & (head is not None)
            with np.errstate(over="ignore"): out = np.clip(np.where(near, low + (out + 1) * (high - low) / 2, out), low, high)
        else:
            sizes = self.net.get("choices") or [a]
            out = out[:a] if mask is None else np.where(mask, out[:a], -np.inf)
            out = np.array([x.argmax() for x in np.split(out, np.cumsum(sizes)[:-1])]) + np.array(env.get("start", 0))
        single = "continuous" not in self.net and "choices" not in self.net
        return int(out[0]) if single else out.reshape(env.get("shape", out.shape))
    def log_probabilities(self, logits, mask):
        """Of each choice of discrete or multi-discrete actions of a policy with a critic."""
        logits = np.where(mask, logits, -np.inf); cuts = np.cumsum(self.net.get("choices") or [len(logits)])[:-1]
        return np.concatenate([x - x.max() - np.log(np.exp(x - x.max()).sum()) for x in np.split(logits, cuts)])

def sigmoid(x): return 1 / (1 + np.exp(-x))
def relu(x): return np.maximum(x, 0)
