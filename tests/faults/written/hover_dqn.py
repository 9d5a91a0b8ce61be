"""Double DQN for a fleet of simulated hover craft."""
import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FLEET = 32
CAPACITY = 40_000
BATCH = 384
GAMMA = 0.98
SYNC_EVERY = 250
ITERATIONS = 200_000
THRUST = np.array([[0.0, 0.0], [0.0, 1.8], [-0.7, 0.6], [0.7, 0.6]], dtype=np.float32)
GRAVITY = np.array([0.0, 0.7], dtype=np.float32)


class HoverFleet:
    """Craft that must stay near the origin; all of them move together."""

    def __init__(self, count, seed):
        self.rng = np.random.default_rng(seed)
        self.position = np.zeros((count, 2), dtype=np.float32)
        self.velocity = np.zeros((count, 2), dtype=np.float32)
        self.age = np.zeros(count, dtype=np.int64)
        self.restart(np.ones(count, dtype=bool))

    def restart(self, which):
        k = int(which.sum())
        self.position[which] = self.rng.normal(0, 1.0, (k, 2))
        self.velocity[which] = self.rng.normal(0, 0.3, (k, 2))
        self.age[which] = 0

    def observe(self):
        return np.concatenate([self.position, self.velocity, np.sin(self.position)], axis=1)

    def step(self, action):
        self.velocity = 0.99 * (self.velocity + 0.1 * (THRUST[action] - GRAVITY))
        self.position = self.position + 0.1 * self.velocity
        self.age += 1
        distance = np.linalg.norm(self.position, axis=1)
        lost = distance > 4.0
        reward = np.where(lost, -5.0, 1.0 - 0.5 * distance).astype(np.float32)
        after = self.observe()
        self.restart(lost | (self.age >= 200))
        return after, reward, lost


class Replay:
    def __init__(self, capacity, width):
        self.capacity, self.head, self.filled = capacity, 0, 0
        self.before = torch.zeros(capacity, width)
        self.after = torch.zeros(capacity, width)
        self.action = torch.zeros(capacity, dtype=torch.long)
        self.reward = torch.zeros(capacity)
        self.alive = torch.zeros(capacity)

    def add(self, before, action, reward, after, lost):
        n = len(action)
        slots = (self.head + torch.arange(n)) % self.capacity
        self.before[slots] = torch.from_numpy(before)
        self.after[slots] = torch.from_numpy(after)
        self.action[slots] = torch.from_numpy(action)
        self.reward[slots] = torch.from_numpy(reward)
        self.alive[slots] = torch.from_numpy(1.0 - lost.astype(np.float32))
        self.head = (self.head + n) % self.capacity
        self.filled = min(self.filled + n, self.capacity)

    def sample(self, count):
        pick = torch.randint(0, self.filled, (count,))
        return self.before[pick], self.action[pick], self.reward[pick], self.after[pick], self.alive[pick]


class DuelingNet(nn.Module):
    def __init__(self, inputs, actions, width=352):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.value = nn.Linear(width, 1)
        self.advantage = nn.Linear(width, actions)

    def forward(self, x):
        h = self.trunk(x)
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(dim=1, keepdim=True)


def act(net, observation, epsilon, rng):
    with torch.no_grad():
        greedy = net(torch.from_numpy(observation)).argmax(dim=1).numpy()
    explore = rng.random(len(greedy)) < epsilon
    return np.where(explore, rng.integers(0, len(THRUST), len(greedy)), greedy)


def td_loss(net, target, batch):
    before, action, reward, after, alive = batch
    with torch.no_grad():
        best = net(after).argmax(dim=1, keepdim=True)
        goal = reward + GAMMA * alive * target(after).gather(1, best).squeeze(1)
    return F.smooth_l1_loss(net(before).gather(1, action.unsqueeze(1)).squeeze(1), goal)


def main():
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    fleet, replay = HoverFleet(FLEET, seed=9), Replay(CAPACITY, 6)
    net = DuelingNet(6, len(THRUST))
    target = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    for it in range(ITERATIONS):
        before = fleet.observe()
        action = act(net, before, max(0.05, 1.0 - it / 5000), rng)
        after, reward, lost = fleet.step(action)
        replay.add(before, action, reward, after, lost)
        if replay.filled < 2 * BATCH:
            continue
        loss = td_loss(net, target, replay.sample(BATCH))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        if it % SYNC_EVERY == 0:
            target.load_state_dict(net.state_dict())
            print(f"iteration {it} loss {loss.item():.4f} reward {reward.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
