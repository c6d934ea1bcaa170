"""Writes pytorch_reference.json: what PyTorch makes of a small recurrent actor and critic, in double precision.

    python3 -m venv venv && venv/bin/pip install torch && venv/bin/python pytorch_reference.py

Forward and backward of two LSTMs with resets within the sequences, masked log-probabilities, PPO's loss, generalised advantages, and
three steps of Adam with clipping of the gradient's norm. Made with torch 2.
"""
import json
import os

import torch
from torch import nn

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
D, H, A, P, T, B = 5, 9, 4, 6, 8, 7
CLIP, CLIP_VF, ENT, VF, GAMMA, LAMBDA, LR, MAX_NORM = 0.2, 0.3, 0.01, 0.5, 0.97, 0.9, 1e-2, 0.05


class Stack(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.lstm = nn.LSTM(D, H)
        self.hidden, self.head = nn.Linear(H, P), nn.Linear(P, outputs)

    def forward(self, x, keep, h, c):
        rows = []
        for t in range(T):
            h, c = h * keep[t][:, None], c * keep[t][:, None]
            y, (h, c) = self.lstm(x[t][None], (h[None], c[None]))
            h, c = h[0], c[0]
            rows.append(y[0])
        return self.head(torch.tanh(self.hidden(torch.stack(rows)))), h, c


actor, critic = Stack(A), Stack(1)


def flat(of):
    """In this project's order: weights are [inputs, outputs], the two biases of an LSTM are one."""
    parts = []
    for stack in (actor, critic):
        lstm = stack.lstm
        bias = of(lstm.bias_ih_l0) + of(lstm.bias_hh_l0) if of is value else of(lstm.bias_ih_l0)
        parts += [of(lstm.weight_ih_l0).T, of(lstm.weight_hh_l0).T, bias]
    for stack in (actor, critic):
        for layer in (stack.hidden, stack.head):
            parts += [of(layer.weight).T, of(layer.bias)]
    return torch.cat([part.reshape(-1) for part in parts]).tolist()


def value(tensor):
    return tensor.detach()


def gradient(tensor):
    return tensor.grad


# One bias learns, as ours does: two would move twice as far.
for stack in (actor, critic):
    nn.init.zeros_(stack.lstm.bias_hh_l0)
    stack.lstm.bias_hh_l0.requires_grad_(False)

x = torch.randn(T, B, D)
start = torch.rand(T, B) < 0.2
keep = (~start).double()
state = 0.5 * torch.randn(B, 4 * H)
mask = torch.rand(T, B, A) < 0.7
actions = torch.randint(0, A, (T, B))
mask.scatter_(2, actions[..., None], True)
old_log_prob = -1.2 + 0.3 * torch.randn(T, B)
reward, last_value = torch.randn(T, B), torch.randn(B)
old_value = 0.5 * torch.randn(T, B)
done_last = torch.rand(B) < 0.3

advantage, running = torch.zeros(T, B), torch.zeros(B)
for t in reversed(range(T)):
    goes_on = 1.0 - (done_last if t + 1 == T else start[t + 1]).double()
    following = last_value if t + 1 == T else old_value[t + 1]
    delta = reward[t] + GAMMA * goes_on * following - old_value[t]
    running = delta + GAMMA * LAMBDA * goes_on * running
    advantage[t] = running
target = advantage + old_value


def loss():
    logits, ha, ca = actor(x, keep, state[:, :H], state[:, H : 2 * H])
    values, hc, cc = critic(x, keep, state[:, 2 * H : 3 * H], state[:, 3 * H :])
    distribution = torch.distributions.Categorical(logits=logits.masked_fill(~mask, -1e8))
    log_prob = distribution.log_prob(actions)
    p = distribution.probs
    entropy = -(p * distribution.logits).sum(-1).mean()
    ratio = (log_prob - old_log_prob).exp()
    normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = -torch.min(normal * ratio, normal * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    used = old_value + (values[..., 0] - old_value).clamp(-CLIP_VF, CLIP_VF)
    error = ((used - target) ** 2).mean()
    return policy, error, entropy, log_prob, values[..., 0], torch.cat([ha, ca, hc, cc], 1)


params = [p for stack in (actor, critic) for p in stack.parameters() if p.requires_grad]
adam = torch.optim.Adam(params, lr=LR, eps=1e-5)
out = {
    "sizes": {"obs": D, "hidden": H, "actions": A, "layer": P, "steps": T, "columns": B},
    "params": flat(value),
    "x": x.reshape(-1).tolist(),
    "start": start.reshape(-1).tolist(),
    "state": state.reshape(-1).tolist(),
    "mask": mask.reshape(-1).tolist(),
    "actions": actions.reshape(-1).tolist(),
    "old_log_prob": old_log_prob.reshape(-1).tolist(),
    "old_value": old_value.reshape(-1).tolist(),
    "reward": reward.reshape(-1).tolist(),
    "done_last": done_last.tolist(),
    "last_value": last_value.tolist(),
    "advantage": advantage.reshape(-1).tolist(),
    "target": target.reshape(-1).tolist(),
    "adam": [],
}
for step in range(3):
    adam.zero_grad()
    policy, error, entropy, log_prob, values, after = loss()
    (policy - ENT * entropy + VF * error).backward()
    if step == 0:
        out["losses"] = [policy.item(), error.item(), entropy.item()]
        out["log_prob"], out["value"] = log_prob.reshape(-1).tolist(), values.reshape(-1).tolist()
        out["state_after"] = after.reshape(-1).tolist()
        out["gradient"] = flat(gradient)
    norm = nn.utils.clip_grad_norm_(params, MAX_NORM)
    adam.step()
    out["adam"].append({"norm": norm.item(), "params": flat(value)})


def short(item):
    if isinstance(item, float):
        return float(f"{item:.8g}")
    if isinstance(item, list):
        return [short(x) for x in item]
    return {k: short(v) for k, v in item.items()} if isinstance(item, dict) else item


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_reference.json"), "w") as file:
    json.dump(short(out), file, separators=(",", ":"))
    file.write("\n")
