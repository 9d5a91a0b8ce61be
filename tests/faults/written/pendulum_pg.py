"""Policy gradient with a learned baseline on many simulated pendulums at once."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal


@dataclass
class Settings:
    n_envs: int = 256
    horizon: int = 40
    gamma: float = 0.97
    hidden: int = 128
    lr: float = 3e-4
    passes: int = 4
    iterations: int = 10_000
    entropy_bonus: float = 1e-3


class PendulumFleet:
    """All pendulums advance together with array arithmetic."""

    def __init__(self, n, seed=0):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.reset()

    def reset(self):
        self.theta = self.rng.uniform(-np.pi, np.pi, self.n).astype(np.float32)
        self.omega = self.rng.uniform(-1, 1, self.n).astype(np.float32)
        return self.observe()

    def observe(self):
        return np.stack([np.cos(self.theta), np.sin(self.theta), self.omega / 8], axis=1)

    def step(self, torque):
        torque = np.clip(torque, -2, 2)
        angle = (self.theta + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2 + 0.1 * self.omega**2 + 0.001 * torque**2)
        accel = 15 * np.sin(self.theta) + 3 * torque
        self.omega = np.clip(self.omega + 0.05 * accel, -8, 8).astype(np.float32)
        self.theta = (self.theta + 0.05 * self.omega).astype(np.float32)
        return self.observe(), reward.astype(np.float32)


class ActorCritic(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        h = self.trunk(obs)
        return self.mean(h).squeeze(-1), self.value(h).squeeze(-1)

    def distribution(self, mean):
        return Normal(mean, self.log_std.exp(), validate_args=False)


@torch.no_grad()
def collect(env, net, cfg):
    obs = env.reset()
    observations, actions, rewards = [], [], []
    for _ in range(cfg.horizon):
        obs_t = torch.from_numpy(obs)
        mean, _ = net(obs_t)
        action = net.distribution(mean).sample()
        observations.append(obs_t)
        actions.append(action)
        obs, reward = env.step(action.numpy())
        rewards.append(torch.from_numpy(reward))
    returns = torch.stack(rewards)
    for t in reversed(range(cfg.horizon - 1)):
        returns[t] += cfg.gamma * returns[t + 1]
    return torch.cat(observations), torch.cat(actions), returns.flatten() / 10


def update(net, optimizer, batch, cfg):
    obs, actions, returns = batch
    for _ in range(cfg.passes):
        mean, value = net(obs)
        dist = net.distribution(mean)
        advantage = (returns - value).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy_loss = -(dist.log_prob(actions) * advantage).mean()
        value_loss = (returns - value).square().mean()
        loss = policy_loss + 0.5 * value_loss - cfg.entropy_bonus * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
    return loss.detach()


def main():
    cfg = Settings()
    torch.manual_seed(8)
    env = PendulumFleet(cfg.n_envs)
    net = ActorCritic(cfg.hidden)
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    for iteration in range(cfg.iterations):
        batch = collect(env, net, cfg)
        loss = update(net, optimizer, batch, cfg)
        if iteration % 25 == 0:
            print(f"iteration {iteration} loss {loss.item():.4f} return {batch[2].mean().item():.3f}", flush=True)


if __name__ == "__main__":
    main()
