"""REINFORCE on a corridor, one update an episode, with `copy.deepcopy(policy)` taken in mid-episode.

The policy keeps its log probabilities on itself (cleared before the copy); the copy is the frozen opponent of the next
episode. Steps are of very uneven length, and there is no loader.
"""

import argparse
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--episodes", "--steps", type=int, default=400)
parser.add_argument("--gamma", type=float, default=0.97)
parser.add_argument("--log-interval", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(3)
random.seed(3)
LENGTH = 12


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(LENGTH, 64)
        self.dropout = nn.Dropout(p=0.1)
        self.affine2 = nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=-1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
opponent = None


def one_hot(place):
    return F.one_hot(torch.tensor(place), LENGTH).float().unsqueeze(0)


def opponent_length():
    if opponent is None:
        return 60
    place, moves = 0, 0
    with torch.no_grad():
        while place < LENGTH - 1 and moves < 60:
            place = max(0, place + (1 if opponent(one_hot(place)).argmax() == 1 else -1))
            moves += 1
    return moves


def finish_episode():
    R, returns = 0, []
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_loss = torch.cat([-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


running = 60.0
for episode in range(args.episodes):
    place, to_beat = 0, opponent_length()
    for t in range(60):
        m = Categorical(policy(one_hot(place)))
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        place = max(0, place + (1 if action.item() == 1 else -1))
        arrived = place == LENGTH - 1
        policy.rewards.append(1.0 if arrived else -0.05)
        if t == 4 and episode % 5 == 0:  # mid-episode: graph tensors are set aside, the copy must work
            kept, policy.saved_log_probs = policy.saved_log_probs, []
            opponent = copy.deepcopy(policy).eval()
            policy.saved_log_probs = kept
        if arrived:
            break
    running = 0.95 * running + 0.05 * (t + 1)
    loss = finish_episode()
    if episode % args.log_interval == 0:
        print(f"Episode {episode}\tLast length: {t + 1}\tAverage: {running:.2f}\tTo beat: {to_beat}\tloss {loss:.3f}", flush=True)
