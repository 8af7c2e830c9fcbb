"""Deep Q-learning: a replay memory of named tuples, masks of non-final states, a target net that follows slowly, Huber loss."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity, seed):
        self.memory = deque([], maxlen=capacity)
        self.random = random.Random(seed)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return self.random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def optimize_model(memory, policy_net, target_net, optimizer, batch_size=16, gamma=0.99):
    if len(memory) < batch_size:
        return None
    batch = Transition(*zip(*memory.sample(batch_size), strict=True))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(batch_size)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * gamma) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def run(same):
    policy_net, target_net = DQN(3, 2), DQN(3, 2)
    same.start(policy_net)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
    memory = ReplayMemory(100, 0)
    losses = []
    state = torch.tensor(same.rng.randn(3), dtype=torch.float32).unsqueeze(0)
    for step in range(28):
        if same.rng.rand() > 0.5:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[same.rng.randint(2)]], dtype=torch.long)
        observation = np.tanh(state[0].numpy() + (action.item() - 0.5) + 0.1 * same.rng.randn(3))
        reward = torch.tensor([1.0 - abs(float(observation[0]))])
        terminated = step % 7 == 6
        next_state = None if terminated else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state if next_state is not None else torch.tensor(same.rng.randn(1, 3), dtype=torch.float32)
        loss = optimize_model(memory, policy_net, target_net, optimizer)
        if loss is not None:
            losses.append(loss)
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * 0.05 + target[key] * (1 - 0.05)
        target_net.load_state_dict(target)
    return losses
