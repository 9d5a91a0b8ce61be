"""Text classification on sentences of very different length, padded to the longest of the batch by a collate function.

A bidirectional GRU over packed sequences, so that every step has another shape; per-epoch validation with the same
collate function; the best model is kept in memory with `copy.deepcopy(state_dict)`.
"""

import argparse
import copy
import random
from functools import partial

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

POSITIVE = "good great lovely fine superb charming bright warm clever".split()
NEGATIVE = "bad awful dull grim poor clumsy cold tired boring".split()
NEUTRAL = "the a film story actor scene and of with in plot music end was very is it that ending camera".split()


def sentence(rng):
    label = rng.randint(0, 1)
    length = min(120, max(4, int(rng.lognormvariate(2.9, 0.8))))
    words = [rng.choice(POSITIVE if label else NEGATIVE) if rng.random() < 0.15 else rng.choice(NEUTRAL) for _ in range(length)]
    return " ".join(words), label


def collate(batch, vocab):
    ids = [torch.tensor([vocab[w] for w in text.split()]) for text, _ in batch]
    lengths = torch.tensor([len(i) for i in ids])
    return pad_sequence(ids, batch_first=True), lengths, torch.tensor([label for _, label in batch])


class Classifier(nn.Module):
    def __init__(self, num_words, dim=96, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(num_words, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 2)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.rnn(packed)
        return self.out(torch.cat([h[0], h[1]], dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(0)
    data = [sentence(rng) for _ in range(1600)]
    vocab = {w: i + 1 for i, w in enumerate(sorted({w for text, _ in data for w in text.split()}))}
    fn = partial(collate, vocab=vocab)
    train_loader = DataLoader(data[:1280], args.batch_size, shuffle=True, collate_fn=fn)
    val_loader = DataLoader(data[1280:], args.batch_size, collate_fn=fn)
    model = Classifier(len(vocab) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    best, best_state, done = 0.0, None, 0
    for epoch in range(args.epochs):
        model.train()
        for tokens, lengths, labels in train_loader:
            loss = criterion(model(tokens, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done += 1
            if done % 10 == 0:
                print(f"step {done} loss {loss.item():.4f} length {tokens.shape[1]}", flush=True)
            if done == args.steps:
                break
        model.eval()
        with torch.no_grad():
            accuracy = sum((model(t, n).argmax(1) == y).sum().item() for t, n, y in val_loader) / 320
        print(f"epoch {epoch} val accuracy {accuracy:.3f}", flush=True)
        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(model.state_dict())
        if done == args.steps:
            break
    model.load_state_dict(best_state)
    print(f"best {best:.3f}")


if __name__ == "__main__":
    main()
