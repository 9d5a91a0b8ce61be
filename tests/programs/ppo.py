"""PPO on a small vectorized environment: `agent.get_action_and_value(...)` is called, never `agent(...)`.

Rollouts are collected without gradients, then several epochs of minibatches update the agent; the learning rate is
annealed by writing into the parameter group. One file, settings in one place, as in published single-file agents.
"""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical


class Poles:
    """Sixteen balancing poles at once, integrated with Euler steps."""

    def __init__(self, num_envs, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((num_envs, 4), dtype=np.float32)
        self.age = np.zeros(num_envs, dtype=np.int64)
        self.reset(np.ones(num_envs, dtype=bool))

    def reset(self, which):
        self.state[which] = self.rng.uniform(-0.05, 0.05, (which.sum(), 4))
        self.age[which] = 0
        return self.state.copy()

    def step(self, action):
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        temp = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        spin_acc = (9.8 * np.sin(angle) - np.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        acc = temp - 0.05 * spin_acc * np.cos(angle) / 1.1
        self.state += 0.02 * np.stack([v, acc, spin, spin_acc], 1).astype(np.float32)
        self.age += 1
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21) | (self.age >= 500)
        lengths = self.age[done].copy()
        self.reset(done)
        return self.state.copy(), np.ones(len(done), dtype=np.float32), done, lengths


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", "--steps", type=int, default=25)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--num-steps", type=int, default=64)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--update-epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=2.5e-3)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip-coef", type=float, default=0.2)
    args = parser.parse_args()
    np.random.seed(1)
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    envs = Poles(args.num_envs, 1)
    agent = Agent()
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + (4,))
    actions, logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(5))
    global_step, start_time, recent = 0, time.time(), []
    next_obs, next_done = torch.Tensor(envs.state.copy()), torch.zeros(args.num_envs)
    for iteration in range(1, args.iterations + 1):
        optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / args.iterations) * args.learning_rate
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            state, reward, done, lengths = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward)
            next_obs, next_done = torch.Tensor(state), torch.Tensor(done)
            recent += lengths.tolist()
        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages, lastgaelam = torch.zeros_like(rewards), 0
            for t in reversed(range(args.num_steps)):
                nextnonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
            returns = advantages + values
        b_obs, b_logprobs, b_actions = obs.reshape(-1, 4), logprobs.reshape(-1), actions.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
        b_inds = np.arange(batch_size)
        for epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb_inds = b_inds[start : start + minibatch_size]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions.long()[mb_inds])
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()
                mb_advantages = b_advantages[mb_inds]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss = torch.max(-mb_advantages * ratio, -mb_advantages * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        length = np.mean(recent[-50:]) if recent else 0.0
        print(f"iteration {iteration} length {length:.1f} loss {loss.item():.4f} SPS: {int(global_step / (time.time() - start_time))}", flush=True)
