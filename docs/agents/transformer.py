"""A transformer over the last observations, a policy with a memory, by advantage actor-critic in PyTorch (Mnih and others, 2016).

What it remembers is a window of observations: the recurrent state of an environment, which is zeros where an episode begins.
"""

import io

import torch
from runner.trained import Saved
from torch import nn

WINDOW = 16


class Transformer(nn.Module):
    """Logits and a value from windows `[B, W, D + 1]`, whose last element is 1 where there was an observation."""

    def __init__(self, obs_dim, num_actions, d_model=32):
        super().__init__()
        self.embed, self.place = nn.Linear(obs_dim, d_model), nn.Parameter(torch.zeros(WINDOW, d_model))
        self.attend = nn.TransformerEncoderLayer(d_model, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(d_model, num_actions + 1)

    def forward(self, window):
        tokens = self.embed(window[..., :-1]) + self.place
        last = self.head(self.attend(tokens, src_key_padding_mask=window[..., -1] == 0)[:, -1])
        return last[:, :-1], last[:, -1]

    def policy(self):
        tensors = io.BytesIO()
        torch.save(self.state_dict(), tensors)
        return Saved(load="transformer:load", files={"model.pt": tensors.getvalue()}, state_len=WINDOW * (self.embed.in_features + 1))


def push(window, obs):
    """The windows with one more observation, without the oldest."""
    return torch.cat([window[:, 1:], torch.cat([obs, torch.ones(len(obs), 1)], 1)[:, None]], 1)


def load(path, spec):
    model = Transformer(len(spec["observation"]), spec["action"]["choices"][0])
    model.load_state_dict(torch.load(path / "model.pt", weights_only=True))

    @torch.no_grad()
    def policy(obs, state):
        window = push(torch.from_numpy(state).reshape(len(obs), WINDOW, -1), torch.from_numpy(obs))
        logits, value = model(window)
        return {"logits": logits, "value": value, "state": window.flatten(1)}

    return policy


def train(ctx, env, total_timesteps, n_steps=16, learning_rate=1e-3, gamma=0.99, ent_coef=0.01):
    obs_dim = env.single_observation_space.shape[0]
    model = Transformer(obs_dim, int(env.single_action_space.n))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    saved = ctx.resume()  # after the network is made: the random numbers go on from here
    env = env.torch()
    if saved is None:
        obs, window = env.reset()[0], torch.zeros(env.num_envs, WINDOW, obs_dim + 1)
    else:
        obs, window = env.observe(), saved["window"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    while not ctx.done:
        steps = []
        for _ in range(n_steps):
            window = push(window, obs)
            logits, value = model(window)
            drawn = torch.distributions.Categorical(logits=logits.masked_fill(~env.action_masks(), -1e8))
            action = drawn.sample()
            obs, reward, terminated, truncated, _ = env.step(action)
            ended = terminated | truncated
            window = window * ~ended[:, None, None]
            steps.append((drawn.log_prob(action), value, drawn.entropy(), reward, (~ended).float()))
        with torch.no_grad():
            following = model(push(window, obs))[1]
        loss = 0.0
        for log_prob, value, entropy, reward, goes_on in reversed(steps):
            following = reward + gamma * goes_on * following
            advantage = following - value
            loss += (0.5 * advantage.square() - advantage.detach() * log_prob - ent_coef * entropy).mean() / n_steps
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        ctx.log("losses/loss", loss.item())
        ctx.validate(model.policy)
        ctx.checkpoint({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "window": window})
    return model.policy()
