"""REINFORCE with a critic on a walk in Python: Categorical, smooth L1, discounted returns, saved actions in a named tuple."""

from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
eps = np.finfo(np.float32).eps.item()


class Walk:
    """Stay near the middle: pushed left or right, with inertia."""

    def reset(self):
        self.state = np.array([0.1, -0.05], dtype=np.float64)
        return self.state

    def step(self, action):
        x, v = self.state
        v = v + (0.1 if action == 1 else -0.1) + 0.05 * x
        self.state = np.array([x + v, v])
        return self.state, 1.0 - abs(x), bool(abs(x) > 1)


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(2, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def finish_episode(model, optimizer, gamma=0.99):
    R = 0
    returns = deque()
    for r in model.rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=True):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def run(same):
    model = same.start(Policy())
    optimizer = optim.Adam(model.parameters(), lr=3e-2)
    env = Walk()
    losses = []
    for _ in range(6):
        state = env.reset()
        for _ in range(20):
            probs, value = model(torch.from_numpy(state).float())
            m = Categorical(probs)
            action = same.choice(m)
            model.saved_actions.append(SavedAction(m.log_prob(action), value))
            state, reward, done = env.step(action.item())
            model.rewards.append(reward)
            if done:
                break
        losses.append(finish_episode(model, optimizer))
    return losses
