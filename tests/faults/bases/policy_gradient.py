"""A policy learns to keep many poles upright; episodes are played in batches, there is no data loader."""

import torch
from torch import nn
from torch.distributions import Categorical

BATCH = 128
HORIZON = 12


class Poles:
    def __init__(self, num):
        self.state = torch.zeros(num, 4)

    def reset(self):
        self.state = torch.rand_like(self.state) * 0.1 - 0.05
        return self.state

    def advance(self, push):
        position, speed, angle, turn = self.state.unbind(1)
        force = push.float() * 2 - 1
        turn = turn + 0.02 * (9.8 * angle.sin() - force * angle.cos())
        speed = speed + 0.02 * force
        self.state = torch.stack([position + 0.02 * speed, speed, angle + 0.02 * turn, turn], 1)
        return self.state, 1.0 - self.state[:, 2].abs()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
        self.choice, self.worth = nn.Linear(256, 2), nn.Linear(256, 1)

    def forward(self, state):
        hidden = self.body(state)
        return self.choice(hidden), self.worth(hidden).squeeze(-1)


def play(policy, poles):
    states, pushes, rewards = [], [], []
    state = poles.reset()
    with torch.no_grad():
        for _ in range(HORIZON):
            logits, _ = policy(state)
            push = Categorical(logits=logits, validate_args=False).sample()
            states.append(state)
            pushes.append(push)
            state, reward = poles.advance(push)
            rewards.append(reward)
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    return torch.cat(states), torch.cat(pushes), returns.flatten()


policy, poles = Policy(), Poles(BATCH)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
step = 0
for iteration in range(100_000):
    states, pushes, returns = play(policy, poles)
    for _ in range(4):
        logits, worth = policy(states)
        advantage = returns - worth.detach()
        chosen = logits.log_softmax(-1).gather(1, pushes[:, None]).squeeze(1)
        loss = -(chosen * advantage).mean() + 0.5 * (returns - worth).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    step += 1
