"""Reinforcement learning with stable-baselines3: an actor-critic on CartPole, a Q network's losses, advantages of a rollout."""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import configure

from ..helpers import data, fill, integers, numbers


def run():
    env = gymnasium.make("CartPole-v1")
    agent = A2C("MlpPolicy", env, n_steps=4, policy_kwargs={"net_arch": [8]}, device="cpu", seed=0)
    fill(agent.policy, scale=0.3)
    seen, actions = data(5, 4), integers(2, 5)
    values, log_prob, entropy = agent.policy.evaluate_actions(seen, actions)
    result = {"evaluated": numbers(values, log_prob, entropy), "best": agent.predict(seen.numpy(), deterministic=True)[0].tolist()}
    buffer = RolloutBuffer(5, env.observation_space, env.action_space, device="cpu", gae_lambda=0.9, gamma=0.95)
    for k in range(5):
        reward, first = np.array([1.0 + k]), np.array([float(k == 0)])
        buffer.add(seen[k : k + 1].numpy(), actions[k : k + 1].numpy(), reward, first, values[k].detach(), log_prob[k : k + 1].detach())
    buffer.compute_returns_and_advantage(values[-1].detach(), np.array([0.0]))
    result["advantages"] = buffer.advantages.ravel().tolist()
    agent.rollout_buffer = buffer
    agent._logger = configure(format_strings=[])
    agent.train()
    result["trained"] = numbers(*agent.policy.parameters())
    q = DQN("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, buffer_size=20, learning_starts=0, batch_size=4, device="cpu", seed=0)
    fill(q.policy, scale=0.3)
    chosen, _ = q.predict(seen.numpy(), deterministic=True)
    return {**result, "q": [*numbers(q.q_net(seen)), *chosen.tolist()], "values": numbers(torch.as_tensor(buffer.returns))}
