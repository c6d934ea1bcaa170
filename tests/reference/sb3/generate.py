"""Policies of stable-baselines3 and sb3-contrib, and what they put out: see README.md.

    python generate.py [NAME…]      # in this directory, with stable-baselines3 2.9.2, sb3-contrib 2.9.2, torch 2.15.0
"""

import json
import sys

import gymnasium
import numpy
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

STEPS = 12
NET = {"pi": [8, 6], "vf": [7]}
MODELS = {
    "ppo_cart_pole": (PPO, "MlpPolicy", "CartPole-v1", {"n_steps": 64, "policy_kwargs": {"net_arch": NET}}),
    "a2c_cart_pole": (A2C, "MlpPolicy", "CartPole-v1", {"policy_kwargs": {"net_arch": [5], "activation_fn": torch.nn.ReLU}}),
    "ppo_pendulum": (PPO, "MlpPolicy", "Pendulum-v1", {"n_steps": 64, "policy_kwargs": {"net_arch": NET}}),
    "dqn_cart_pole": (DQN, "MlpPolicy", "CartPole-v1", {"learning_starts": 10, "policy_kwargs": {"net_arch": [9, 4]}}),
    "sac_pendulum": (SAC, "MlpPolicy", "Pendulum-v1", {"learning_starts": 10, "policy_kwargs": {"net_arch": [8, 6]}}),
    "td3_pendulum": (TD3, "MlpPolicy", "Pendulum-v1", {"learning_starts": 10, "policy_kwargs": {"net_arch": [8, 6]}}),
    "recurrent_ppo_cart_pole": (RecurrentPPO, "MlpLstmPolicy", "CartPole-v1", {"n_steps": 64, "policy_kwargs": {"net_arch": NET, "lstm_hidden_size": 6}}),
    "recurrent_ppo_shared": (
        RecurrentPPO,
        "MlpLstmPolicy",
        "Pendulum-v1",
        {"n_steps": 64, "policy_kwargs": {"net_arch": NET, "lstm_hidden_size": 5, "n_lstm_layers": 2, "shared_lstm": True, "enable_critic_lstm": False}},
    ),
}


def outputs(model, observations):
    """Logarithms of probabilities or means, and values, of each observation; recurrent policies see them as one episode."""
    policy = model.policy
    states = None
    rows = []
    for i, obs in enumerate(observations):
        with torch.no_grad():
            batch = torch.as_tensor(obs)[None]
            if isinstance(model, DQN):
                rows.append({"action": policy.q_net(batch)[0].tolist()})
                continue
            if isinstance(model, (SAC, TD3)):
                rows.append({"action": model.predict(obs, deterministic=True)[0].tolist()})
                continue
            if isinstance(model, RecurrentPPO):
                shape = (policy.lstm_actor.num_layers, 1, policy.lstm_actor.hidden_size)
                if states is None:
                    states = [tuple(torch.zeros(shape) for _ in range(2)) for _ in range(2)]
                start = torch.tensor([float(i == 0)])
                features = policy.extract_features(batch)
                latent, actor = policy._process_sequence(features, states[0], start, policy.lstm_actor)
                if policy.lstm_critic is not None:
                    latent_vf, critic = policy._process_sequence(features, states[1], start, policy.lstm_critic)
                elif policy.shared_lstm:
                    latent_vf, critic = latent, actor
                else:
                    latent_vf, critic = policy.critic(features), states[1]
                states = [actor, critic]
                latent, latent_vf = policy.mlp_extractor.forward_actor(latent), policy.mlp_extractor.forward_critic(latent_vf)
            else:
                latent, latent_vf = policy.mlp_extractor(policy.extract_features(batch))
            action = policy.action_net(latent)
            if hasattr(policy.action_dist, "distribution") and isinstance(model.action_space, gymnasium.spaces.Discrete):
                action = torch.log_softmax(action, dim=1)
            rows.append({"action": action[0].tolist(), "value": policy.value_net(latent_vf)[0, 0].item()})
    return rows


for name, (algorithm, policy, env, settings) in MODELS.items():
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    torch.set_num_threads(1)
    model = algorithm(policy, env, seed=1, **settings)
    model.learn(256)
    model.save(name)
    observations = numpy.random.default_rng(2).normal(size=(STEPS, *model.observation_space.shape)).astype("float32")
    expected = {"env": env, "observations": observations.tolist(), "outputs": outputs(model, observations)}
    with open(f"{name}.json", "w") as file:
        json.dump(expected, file)
        file.write("\n")
