"""Soft actor-critic for discrete actions in PyTorch, in one file, as CleanRL writes its algorithms.

Haarnoja and others, "Soft Actor-Critic Algorithms and Applications" (2018), with two critics and a temperature that is learned; for discrete actions, where
expectations over actions are sums: Christodoulou, "Soft Actor-Critic for Discrete Action Settings" (2019).
"""

import io
import json

import numpy as np
import torch
from runner.trained import Saved
from torch import nn


def network(obs_dim, num_actions, hidden):
    return nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_actions))


class Actor(nn.Module):
    def __init__(self, obs_dim, num_actions, hidden):
        super().__init__()
        self.shape, self.logits = [obs_dim, num_actions, hidden], network(obs_dim, num_actions, hidden)

    def log_probs(self, obs, masks):
        return self.logits(obs).masked_fill(~masks, -1e8).log_softmax(-1)

    def policy(self):
        """The actor as files, which `load` reads wherever the policy decides."""
        tensors = io.BytesIO()
        torch.save(self.state_dict(), tensors)
        return Saved(load="sac:load", files={"actor.pt": tensors.getvalue(), "shape.json": json.dumps(self.shape).encode()})


def load(path, spec):
    """The policy of the files: logits for observations `[B, D]`; what is masked never counts."""
    actor = Actor(*json.loads((path / "shape.json").read_text()))
    actor.load_state_dict(torch.load(path / "actor.pt", weights_only=True))

    @torch.no_grad()
    def policy(obs):
        return {"logits": actor.logits(torch.from_numpy(obs)).numpy()}

    return policy


class Replay:
    """The last `size` steps of every environment."""

    def __init__(self, size, n_envs, obs_dim, num_actions):
        def zeros(*shape, dtype=torch.float32):
            return torch.zeros(size, n_envs, *shape, dtype=dtype)

        self.size, self.added = size, 0
        self.columns = {"obs": zeros(obs_dim), "mask": zeros(num_actions, dtype=torch.bool), "action": zeros(dtype=torch.int64)}
        self.columns |= {"reward": zeros(), "end": zeros(), "next_obs": zeros(obs_dim), "next_mask": zeros(num_actions, dtype=torch.bool)}

    def add(self, **row):
        for name, value in row.items():
            self.columns[name][self.added % self.size] = torch.as_tensor(value)
        self.added += 1

    def sample(self, count):
        row = torch.randint(min(self.added, self.size), (count,))
        env = torch.randint(self.columns["reward"].shape[1], (count,))
        return {name: column[row, env] for name, column in self.columns.items()}


def train(ctx, env, total_timesteps, learning_starts=10_000, buffer_size=200_000, batch_size=256, train_freq=64, learning_rate=3e-4, gamma=0.99,
          tau=0.005, entropy=0.3, reward_scale=1.0, hidden=64):  # fmt: skip
    """`entropy` is the share of the largest entropy that the temperature aims at; there is an update every `train_freq` steps."""
    n_envs, obs_dim, num_actions = env.num_envs, env.single_observation_space.shape[0], int(env.single_action_space.n)
    actor = Actor(obs_dim, num_actions, hidden)
    critics, targets = (nn.ModuleList(network(obs_dim, num_actions, hidden) for _ in range(2)) for _ in range(2))
    targets.load_state_dict(critics.state_dict())
    log_alpha = nn.ParameterList([torch.zeros(())])
    optimizers = [torch.optim.Adam(module.parameters(), lr=learning_rate) for module in (actor, critics, log_alpha)]
    replay = Replay(buffer_size // n_envs, n_envs, obs_dim, num_actions)
    modules = [actor, critics, targets, log_alpha]
    saved = ctx.resume()  # after the networks are made: the random numbers go on from here
    if saved is None:
        obs, _ = env.reset()
    else:
        obs = env.observe()
        replay.__dict__.update(saved["replay"])
        for part, state in zip(modules + optimizers, saved["parts"]):
            part.load_state_dict(state)
    while not ctx.done:
        # Act: at first evenly, then by the actor's distribution.
        masks = env.action_masks()
        with torch.no_grad():
            chances = actor.log_probs(torch.as_tensor(obs), torch.as_tensor(masks)).exp()
            action = torch.multinomial(torch.as_tensor(masks).float() if ctx.steps < learning_starts else chances, 1)[:, 0]
        next_obs, reward, terminated, truncated, info = env.step(action.numpy())
        ended, after, next_masks = terminated | truncated, next_obs, env.action_masks()
        if ended.any():  # after an end, the environment shows the next episode: its last observation has no mask
            after = np.where(ended[:, None], info["final_obs"], next_obs)
            next_masks = ended[:, None] | next_masks
        replay.add(obs=obs, mask=masks, action=action, reward=reward_scale * reward, end=terminated, next_obs=after, next_mask=next_masks)
        obs = next_obs

        for _ in range(n_envs // train_freq if ctx.steps >= learning_starts else 0):
            batch, alpha = replay.sample(batch_size), log_alpha[0].exp().detach()
            # The critics, by the soft Bellman equation.
            with torch.no_grad():
                log_p = actor.log_probs(batch["next_obs"], batch["next_mask"])
                least = torch.minimum(*(target(batch["next_obs"]) for target in targets))
                goal = batch["reward"] + gamma * (1 - batch["end"]) * (log_p.exp() * (least - alpha * log_p)).sum(-1)
            q = [critic(batch["obs"]) for critic in critics]
            critic_loss = sum((values.gather(1, batch["action"][:, None])[:, 0] - goal).square().mean() for values in q)
            # The actor, by what they expect, and the temperature, by the entropy that is wanted.
            log_p = actor.log_probs(batch["obs"], batch["mask"])
            actor_loss = (log_p.exp() * (alpha * log_p - torch.minimum(*q).detach())).sum(-1).mean()
            excess = -(log_p.exp() * log_p).sum(-1).detach() - entropy * batch["mask"].sum(-1).float().log()
            for optimizer, loss in zip(optimizers, (actor_loss, critic_loss, (log_alpha[0].exp() * excess).mean())):
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                for target, critic in zip(targets.parameters(), critics.parameters()):
                    target.lerp_(critic, tau)
        if ctx.steps >= learning_starts and ctx.steps // n_envs % 50 == 0:
            ctx.log("losses/critic_loss", critic_loss.item())
            ctx.log("losses/alpha", alpha.item())
        ctx.validate(actor.policy)
        ctx.checkpoint({"parts": [part.state_dict() for part in modules + optimizers], "replay": vars(replay)})
    return actor.policy()
