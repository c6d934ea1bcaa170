"""PPO and recurrent PPO as PyTorch (cuDNN's LSTM) and JAX (one compiled function) train them on the device of `.ci/gpu`, at the sizes
of gpu.yaml. Observations are drawn on the device, so that no environment is timed: the figures favour the peers. One JSON line each.
Usage: gpu_peers.py {torch|jax} {gpu|cpu} --units 64 496 2048 --envs 256"""

import argparse
import json
import time

OBS, ACTIONS, STEPS, MINIBATCHES, EPOCHS = 68, 20, 128, 4, 4


def rate(update, envs, wait):
    """Environment steps per second of the fastest of some updates, after one that compiles."""
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        update()
        wait()
        best = min(best, time.perf_counter() - began)
    return envs * STEPS / best


def with_torch(kind, units, envs, platform):
    import torch
    from torch import nn

    device = torch.device("cuda" if platform == "gpu" else "cpu")
    wait = torch.cuda.synchronize if platform == "gpu" else lambda: None

    def head(width, outputs):
        return nn.Sequential(nn.Linear(width, units), nn.Tanh(), nn.Linear(units, units), nn.Tanh(), nn.Linear(units, outputs))

    recurrent = kind == "recurrent_ppo"
    cells = nn.ModuleList([nn.LSTM(OBS, units) for _ in range(2)] if recurrent else [])
    heads = nn.ModuleList(
        [nn.Linear(units, ACTIONS), nn.Linear(units, 1)] if recurrent else [head(OBS, ACTIONS), head(OBS, 1)]
    )
    net = nn.ModuleList([cells, heads]).to(device)
    adam = torch.optim.Adam(net.parameters(), 3e-4, fused=platform == "gpu")

    def forward(x, states):
        if not recurrent:
            return heads[0](x), heads[1](x)[..., 0], states
        ran = [cell(x, state) for cell, state in zip(cells, states)]
        return heads[0](ran[0][0]), heads[1](ran[1][0])[..., 0], [state for _, state in ran]

    def update():
        zero = torch.zeros(1, envs, units, device=device)
        states, rows = [(zero, zero)] * 2, []
        with torch.no_grad():
            for _ in range(STEPS):
                x = torch.randn(1, envs, OBS, device=device)
                logits, value, states = forward(x, states)
                law = torch.distributions.Categorical(logits=logits)
                action = law.sample()
                rows.append((x, action, law.log_prob(action), value, torch.randn(1, envs, device=device)))
            x, action, before, value, reward = (torch.cat(column) for column in zip(*rows))
            advantage, last = torch.zeros_like(value), torch.zeros(envs, device=device)
            for t in reversed(range(STEPS - 1)):
                last = reward[t] + 0.99 * value[t + 1] - value[t] + 0.99 * 0.95 * last
                advantage[t] = last
            returns = advantage + value
        for _ in range(EPOCHS):
            for chosen in torch.randperm(envs, device=device).chunk(MINIBATCHES):
                start = torch.zeros(1, len(chosen), units, device=device)
                logits, v, _ = forward(x[:, chosen], [(start, start)] * 2)
                law = torch.distributions.Categorical(logits=logits)
                ratio = (law.log_prob(action[:, chosen]) - before[:, chosen]).exp()
                a = advantage[:, chosen]
                a = (a - a.mean()) / (a.std() + 1e-8)
                policy = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
                loss = policy + 0.5 * (v - returns[:, chosen]).square().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                adam.step()

    return rate(update, envs, wait), torch.cuda.get_device_name() if platform == "gpu" else "CPU"


def with_jax(kind, units, envs, platform):
    import jax
    import jax.numpy as jnp
    import optax

    recurrent = kind == "recurrent_ppo"
    keys = iter(jax.random.split(jax.random.key(1), 64))

    def dense(inputs, outputs):
        return jax.random.normal(next(keys), (inputs, outputs)) / inputs**0.5, jnp.zeros(outputs)

    def chain(*sizes):
        return [dense(a, b) for a, b in zip(sizes, sizes[1:])]

    if recurrent:
        params = [(dense(OBS, 4 * units), dense(units, 4 * units), chain(units, n)) for n in (ACTIONS, 1)]
    else:
        params = [chain(OBS, units, units, n) for n in (ACTIONS, 1)]
    adam = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4))

    def run(layers, x):
        for i, (w, b) in enumerate(layers):
            x = x @ w + b
            x = jnp.tanh(x) if i + 1 < len(layers) else x
        return x

    def cell(w, state, gates):
        i, f, g, o = jnp.split(gates + state[0] @ w, 4, -1)
        c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def forward(params, x, states):
        if not recurrent:
            return run(params[0], x), run(params[1], x)[..., 0], states
        outputs, after = [], []
        for ((wx, b), (wh, _), last), state in zip(params, states):
            state, h = jax.lax.scan(lambda state, gates, wh=wh: cell(wh, state, gates), state, x @ wx + b)
            outputs.append(run(last, h))
            after.append(state)
        return outputs[0], outputs[1][..., 0], after

    def zeros(n):
        return [(jnp.zeros((n, units)), jnp.zeros((n, units)))] * 2 if recurrent else []

    def loss(params, x, action, before, advantage, returns):
        logits, v, _ = forward(params, x, zeros(x.shape[1]))
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]
        ratio = jnp.exp(log_prob - before)
        a = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = -jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a).mean()
        return policy + 0.5 * jnp.square(v - returns).mean()

    @jax.jit
    def update(params, moments, key):
        def step(states, key):
            draws = jax.random.split(key, 3)
            x = jax.random.normal(draws[0], (1, envs, OBS))
            logits, value, states = forward(params, x, states)
            action = jax.random.categorical(draws[1], logits)
            log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]
            return states, (x[0], action[0], log_prob[0], value[0], jax.random.normal(draws[2], (envs,)))

        rollout, shuffle = jax.random.split(key)
        _, (x, action, before, value, reward) = jax.lax.scan(step, zeros(envs), jax.random.split(rollout, STEPS))
        delta = reward[:-1] + 0.99 * value[1:] - value[:-1]
        _, advantage = jax.lax.scan(lambda s, d: (d + 0.9405 * s,) * 2, jnp.zeros(envs), delta, reverse=True)
        advantage = jnp.concatenate([advantage, jnp.zeros((1, envs))])
        data = (x, action, before, advantage, advantage + value)

        def minibatch(carry, chosen):
            params, moments = carry
            grad = jax.grad(loss)(params, *(column[:, chosen] for column in data))
            change, moments = adam.update(grad, moments)
            return (optax.apply_updates(params, change), moments), None

        order = [jax.random.permutation(key, envs) for key in jax.random.split(shuffle, EPOCHS)]
        order = jnp.stack(order).reshape(EPOCHS * MINIBATCHES, -1)
        return jax.lax.scan(minibatch, (params, moments), order)[0]

    at = jax.devices(platform)[0]
    with jax.default_device(at):
        state = [jax.device_put(params, at), jax.device_put(adam.init(params), at)]

        def once():
            state[:] = update(*state, jax.random.key(2))

        return rate(once, envs, lambda: jax.block_until_ready(state)), at.device_kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["torch", "jax"])
    parser.add_argument("platform", choices=["gpu", "cpu"])
    parser.add_argument("--units", type=int, nargs="+", required=True)
    parser.add_argument("--envs", type=int, required=True)
    args = parser.parse_args()
    measure = {"torch": with_torch, "jax": with_jax}[args.library]
    for kind in ("ppo", "recurrent_ppo"):
        for units in args.units:
            speed, name = measure(kind, units, args.envs, args.platform)
            result = {"training": f"{kind}[units={units}]", "steps_s": speed, "device": name}
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
