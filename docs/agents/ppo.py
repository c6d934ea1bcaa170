"""Proximal policy optimisation in PyTorch, in one file, as CleanRL writes its algorithms.

Schulman and others, "Proximal Policy Optimization Algorithms" (2017), with generalised advantage estimation (2016); discrete actions, masked where the
environment masks them. Rewards are divided by the deviation of discounted returns, as Gymnasium's `NormalizeReward` does.
"""

import numpy as np
import torch
from runner.trained import Weights
from torch import nn
from torch.distributions import Categorical


def layer(inputs, outputs, gain=2**0.5):
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


class Agent(nn.Module):
    """An actor and a critic of two hidden layers each."""

    def __init__(self, obs_dim, num_actions, hidden):
        super().__init__()
        self.pi = nn.ModuleList([layer(obs_dim, hidden), layer(hidden, hidden), layer(hidden, num_actions, 0.01)])
        self.vf = nn.ModuleList([layer(obs_dim, hidden), layer(hidden, hidden), layer(hidden, 1, 1.0)])

    def value(self, obs):
        return self.vf[2](self.vf[1](self.vf[0](obs).tanh()).tanh())[:, 0]

    def distribution(self, obs, masks):
        logits = self.pi[2](self.pi[1](self.pi[0](obs).tanh()).tanh())
        return Categorical(logits=logits.masked_fill(~masks, -1e8), validate_args=False)

    def policy(self):
        """The same network as one of the program's own, which then decides natively."""
        names = {"pi": ["pi.0", "pi.1", "action"], "vf": ["vf.0", "vf.1", "value"]}
        layers = [pair for part, own in names.items() for pair in zip(own, getattr(self, part))]
        tensors = {f"{name}.weight": linear.weight.T for name, linear in layers} | {f"{name}.bias": linear.bias for name, linear in layers}
        hidden = self.pi[0].out_features
        return Weights(tensors, architecture={"pi": [hidden, hidden], "vf": [hidden, hidden], "activation": "tanh"})


class Returns:
    """The running variance of discounted returns (Chan and others, 1979)."""

    def __init__(self, n_envs):
        self.now, self.count, self.mean, self.squares = np.zeros(n_envs), 1e-4, 0.0, 1e-4

    def scale(self, reward, ended, gamma):
        self.now = self.now * gamma + reward
        n, mean = len(self.now), self.now.mean()
        total, away = self.count + n, mean - self.mean
        self.squares += ((self.now - mean) ** 2).sum() + away**2 * self.count * n / total
        self.mean, self.count = self.mean + away * n / total, total
        self.now[ended] = 0.0
        return reward / np.sqrt(self.squares / self.count + 1e-8)


def train(ctx, env, total_timesteps, n_steps=128, batch_size=2048, n_epochs=4, learning_rate=1e-3, gamma=0.99, gae_lambda=0.95, clip_range=0.2,
          ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, hidden=64):  # fmt: skip
    n_envs, obs_dim, num_actions = env.num_envs, env.single_observation_space.shape[0], int(env.single_action_space.n)
    agent = Agent(obs_dim, num_actions, hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=learning_rate, eps=1e-5)
    returns = Returns(n_envs)
    saved = ctx.resume()  # after the network is made: the random numbers go on from here
    if saved is None:
        obs, _ = env.reset()
    else:
        obs = env.observe()
        agent.load_state_dict(saved["agent"])
        optimizer.load_state_dict(saved["optimizer"])
        returns.__dict__.update(saved["returns"])

    def zeros(*size, dtype=torch.float32):
        return torch.zeros((n_steps, n_envs, *size), dtype=dtype)

    seen, masks = zeros(obs_dim), zeros(num_actions, dtype=torch.bool)
    actions, log_probs, values = zeros(dtype=torch.int64), zeros(), zeros()
    rewards, ends, beyond = zeros(), zeros(), zeros()
    while not ctx.done:
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - ctx.steps / total_timesteps)

        # Collect n_steps of every environment.
        for t in range(n_steps):
            seen[t], masks[t] = torch.as_tensor(obs), torch.as_tensor(env.action_masks())
            with torch.no_grad():
                distribution = agent.distribution(seen[t], masks[t])
                actions[t] = distribution.sample()
                log_probs[t], values[t] = distribution.log_prob(actions[t]), agent.value(seen[t])
            obs, reward, terminated, truncated, info = env.step(actions[t].numpy())
            ended = terminated | truncated
            rewards[t], ends[t] = torch.as_tensor(returns.scale(reward, ended, gamma)), torch.as_tensor(ended)
            if truncated.any():  # what an episode that was cut off would have gone on to earn
                with torch.no_grad():
                    value = agent.value(torch.as_tensor(info["final_obs"]))
                beyond[t] = torch.where(torch.as_tensor(truncated & ~terminated), value, 0.0)
            else:
                beyond[t] = 0.0

        # Advantages.
        with torch.no_grad():
            next_value = agent.value(torch.as_tensor(obs))
        advantages, following = torch.zeros_like(rewards), torch.zeros(n_envs)
        for t in reversed(range(n_steps)):
            after = torch.where(ends[t] > 0, beyond[t], next_value)
            delta = rewards[t] + gamma * after - values[t]
            following = delta + gamma * gae_lambda * (1 - ends[t]) * following
            advantages[t], next_value = following, values[t]

        # Update by the clipped surrogate, in epochs of minibatches.
        flat = [x.flatten(0, 1) for x in (seen, masks, actions, log_probs, advantages, advantages + values)]
        for _ in range(n_epochs):
            for rows in torch.randperm(n_steps * n_envs).split(batch_size):
                o, m, a, old, advantage, target = (x[rows] for x in flat)
                distribution = agent.distribution(o, m)
                ratio = (distribution.log_prob(a) - old).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy_loss = -torch.minimum(advantage * ratio, advantage * ratio.clamp(1 - clip_range, 1 + clip_range)).mean()
                value_loss, entropy = (agent.value(o) - target).square().mean(), distribution.entropy().mean()
                optimizer.zero_grad()
                (policy_loss + vf_coef * value_loss - ent_coef * entropy).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
                optimizer.step()
        ctx.log("losses/policy_loss", policy_loss.item())
        ctx.log("losses/value_loss", value_loss.item())
        ctx.log("losses/entropy", entropy.item())
        ctx.validate(agent.policy)
        ctx.checkpoint({"agent": agent.state_dict(), "optimizer": optimizer.state_dict(), "returns": vars(returns)})
    return agent.policy()
