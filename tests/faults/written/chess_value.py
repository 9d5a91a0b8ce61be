"""Train a value and policy network on random board positions."""
import os
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

PLANES, MOVES = 14, 256
POSITIONS, BATCH, STEPS = 16_000, 32, 80_000


class AtomicStore:
    """Keeps the latest training state; a reader never sees a half-written file."""

    def __init__(self, folder, interval):
        self.target = Path(folder) / "latest.ckpt"
        self.interval = interval

    def due(self, step):
        return step % self.interval == 0

    def put(self, **state):
        scratch = self.target.with_suffix(".tmp")
        with open(scratch, "wb") as stream:
            torch.save(state, stream)
        os.replace(scratch, self.target)

    def offer(self, step, network, optimizer):
        if self.due(step):
            self.put(step=step, network=network.state_dict(), optimizer=optimizer.state_dict())

    def restore(self, network, optimizer):
        if not self.target.exists():
            return 0
        state = torch.load(self.target)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        return state["step"] + 1


class BoardNet(nn.Module):
    def __init__(self, width=32, hidden=768):
        super().__init__()
        self.conv1 = nn.Conv2d(PLANES, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, width, 3, padding=1)
        self.join = nn.Linear(width * 64, hidden)
        self.value = nn.Linear(hidden, 1)
        self.policy = nn.Linear(hidden, MOVES)

    def forward(self, board):
        x = F.relu(self.conv1(board))
        x = x + F.relu(self.conv2(x))
        x = x + F.relu(self.conv3(x))
        x = F.relu(self.join(x.flatten(1)))
        return torch.tanh(self.value(x)).squeeze(1), self.policy(x)


def random_positions(seed):
    gen = torch.Generator().manual_seed(seed)
    board = (torch.rand(POSITIONS, PLANES, 8, 8, generator=gen) < 0.08).float()
    worth = torch.linspace(-1, 1, PLANES).view(1, PLANES, 1, 1)
    value = torch.tanh((board * worth).sum(dim=(1, 2, 3)) / 3)
    move = (board[:, 0].flatten(1).argmax(dim=1) * 4 + (value > 0).long()) % MOVES
    return board, value, move


def main():
    torch.manual_seed(101)
    board, value, move = random_positions(seed=102)
    network = BoardNet()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-4)
    store = AtomicStore(tempfile.mkdtemp(prefix="board_"), interval=3)
    for step in range(store.restore(network, optimizer), STEPS):
        pick = torch.randint(0, POSITIONS, (BATCH,))
        guess, logits = network(board[pick])
        loss = F.mse_loss(guess, value[pick]) + F.cross_entropy(logits, move[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        store.offer(step, network, optimizer)
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
