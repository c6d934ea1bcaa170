"""A linear policy, by an evolution strategy in NumPy: Salimans et al., 2017, "Evolution strategies as a scalable alternative to reinforcement learning"."""

import numpy as np
from runner.trained import Weights


def train(ctx, env, total_timesteps, sigma=0.5, learning_rate=0.3):
    env, random = env.views(), np.random.default_rng(ctx.seed)
    shape = env.single_observation_space.shape[0], int(env.single_action_space.n)
    weights = np.zeros(shape)
    state = ctx.resume()
    if state is not None:
        weights, random.bit_generator.state = state["weights"], state["random"]
    while not ctx.done:
        # Each environment has a member of the population, every other one with the noise of its neighbour, negated.
        noise = random.normal(size=(env.num_envs, *shape))
        noise[1::2] = -noise[::2]
        scores = play(env, weights + sigma * noise)
        advantages = (scores - scores.mean()) / (scores.std() + 1e-8)
        weights = weights + learning_rate / (env.num_envs * sigma) * np.einsum("b,bda->da", advantages, noise)
        ctx.log("charts/population_std", scores.std())
        ctx.validate(lambda: linear(weights))
        ctx.checkpoint({"weights": weights, "random": random.bit_generator.state})
    return linear(weights)


def play(env, members):
    """The return of an episode of each member: weights `[B, D, A]`."""
    obs, _ = env.reset()
    scores, playing = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    while playing.any():
        logits = np.einsum("bd,bda->ba", obs, members)
        actions = np.where(env.action_masks(), logits, -np.inf).argmax(axis=1)
        obs, rewards, terminated, truncated, _ = env.step(actions)
        scores += np.where(playing, rewards, 0.0)
        playing &= ~(terminated | truncated)
    return scores


def linear(weights):
    """A network without hidden layers, which then decides natively; its critic is not used."""
    d, a = weights.shape
    tensors = {"action.weight": weights, "action.bias": np.zeros(a), "value.weight": np.zeros((d, 1)), "value.bias": np.zeros(1)}
    return Weights(tensors, architecture={"pi": [], "vf": []})
