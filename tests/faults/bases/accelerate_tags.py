"""Tags for words, a recurrent tagger, driven by accelerate with accumulation."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_SAMPLES = 2400
BATCH = 24


class Tagger(nn.Module):
    def __init__(self, words, tags, width=96):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = nn.Sequential(
            nn.Conv1d(width, 2 * width, 5, padding=2), nn.GELU(), nn.Conv1d(2 * width, width, 5, padding=2), nn.GELU()
        )
        self.out = nn.Linear(width, tags)

    def forward(self, words):
        hidden = self.embed(words)
        return self.out(hidden + self.mix(hidden.transpose(1, 2)).transpose(1, 2))


def train_loop(accelerator, config):
    torch.manual_seed(config["seed"])
    words = torch.randint(0, config["words"], (NUM_SAMPLES, 48))
    tags = (words + words.roll(1, 1)) % config["tags"]
    tagger = Tagger(config["words"], config["tags"])
    optimizer = torch.optim.AdamW(tagger.parameters(), lr=config["lr"], fused=True)
    batches = DataLoader(TensorDataset(words, tags), batch_size=BATCH, shuffle=True)
    tagger, optimizer, batches = accelerator.prepare(tagger, optimizer, batches)
    step = 0
    for epoch in range(config["epochs"]):
        for x, y in batches:
            with accelerator.accumulate(tagger):
                guess = tagger(x)
                loss = nn.functional.cross_entropy(guess.flatten(0, 1), y.flatten())
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    settings = {"seed": 4, "words": 300, "tags": 7, "lr": 2e-3, "epochs": 1000}
    train_loop(Accelerator(cpu=True, gradient_accumulation_steps=2), settings)
