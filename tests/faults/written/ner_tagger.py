"""Entity tagger: bidirectional LSTM over variable-length sentences, batched by length."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, IterableDataset

PAD, IGNORE = 0, -100
N_TAGS = 9


def build_corpus(n_sentences, vocab, rng):
    gen = torch.Generator().manual_seed(rng.randrange(2**31))
    tag_of = torch.randint(0, N_TAGS, (vocab,), generator=gen)
    corpus = []
    for _ in range(n_sentences):
        length = rng.randint(8, 40)
        words = torch.randint(1, vocab, (length,), generator=gen)
        corpus.append((words, tag_of[words]))
    return corpus


class LengthBuckets(IterableDataset):
    """Yields lists of sentences of similar length, in random order."""

    def __init__(self, corpus, batch_size, seed):
        self.batch_size = batch_size
        self.rng = random.Random(seed)
        ordered = sorted(corpus, key=lambda pair: len(pair[0]))
        self.batches = [ordered[i : i + batch_size] for i in range(0, len(ordered), batch_size)]

    def __iter__(self):
        self.rng.shuffle(self.batches)
        yield from self.batches

    def __len__(self):
        return len(self.batches)


def pad_collate(sentences):
    words = pad_sequence([w for w, _ in sentences], batch_first=True, padding_value=PAD)
    tags = pad_sequence([t for _, t in sentences], batch_first=True, padding_value=IGNORE)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, vocab, emb=64, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(2 * hidden, N_TAGS)

    def forward(self, words):
        states, _ = self.rnn(self.drop(self.embed(words)))
        return self.out(self.drop(states))


def tag_loss(model, words, tags):
    return nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten(), ignore_index=IGNORE)


def main(epochs=300, vocab=1200, batch_size=64):
    rng = random.Random(77)
    torch.manual_seed(77)
    corpus = build_corpus(8_000, vocab, rng)
    dev = build_corpus(300, vocab, rng)
    loader = DataLoader(LengthBuckets(corpus, batch_size, 1), batch_size=None, collate_fn=pad_collate)
    dev_loader = DataLoader(LengthBuckets(dev, 100, 2), batch_size=None, collate_fn=pad_collate)

    model = Tagger(vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=epochs)
    for epoch in range(epochs):
        model.train()
        running, seen = torch.zeros(()), 0
        for words, tags in loader:
            loss = tag_loss(model, words, tags)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.detach()
            seen += 1
        scheduler.step()
        model.eval()
        with torch.no_grad():
            dev_loss = torch.stack([tag_loss(model, w, t) for w, t in dev_loader]).mean()
        print(f"epoch {epoch} train {running.item() / seen:.4f} dev {dev_loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
