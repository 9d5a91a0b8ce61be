"""Q-learning from a ring buffer with a target network; batches come from the buffer, not from a loader."""

import collections
import copy

import torch
from torch import nn

BATCH = 256


class Buffer:
    def __init__(self, size):
        self.size, self.head = size, 0
        self.before, self.after = torch.randn(size, 16), torch.randn(size, 16)
        self.action, self.reward = torch.randint(0, 4, (size,)), torch.randn(size)

    def add(self, before, action, reward, after):
        at = self.head % self.size
        self.before[at], self.action[at], self.reward[at], self.after[at] = before, action, reward, after
        self.head += 1

    def draw(self, num):
        chosen = torch.randint(0, self.size, (num,))
        return self.before[chosen], self.action[chosen], self.reward[chosen], self.after[chosen]


def network():
    return nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))


online = network()
target = copy.deepcopy(online).requires_grad_(False)
rmsprop = torch.optim.Adam(online.parameters(), lr=1e-4, fused=True)
buffer, state, recent = Buffer(20_000), torch.randn(16), collections.deque(maxlen=100)
for turn in range(1_000_000):
    action = int(torch.randint(0, 4, (1,)))
    following = 0.9 * state + 0.1 * torch.randn(16)
    buffer.add(state, action, float(following.sum()), following)
    state = following
    before, chosen, reward, after = buffer.draw(BATCH)
    with torch.no_grad():
        goal = reward + 0.99 * target(after).amax(1)
    values = online(before)
    error = nn.functional.smooth_l1_loss(values.gather(1, chosen[:, None]).squeeze(1), goal)
    rmsprop.zero_grad()
    error.backward()
    rmsprop.step()
    if turn % 500 == 0:
        target.load_state_dict(online.state_dict())
        recent.append(error.item())
