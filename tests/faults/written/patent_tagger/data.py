"""Invented patent abstracts and a byte-pair subword encoder."""
import random
from collections import Counter

import torch
from torch.utils.data import DataLoader, Dataset

SYLLABLES = "ba cor den fil gra hin jol kem lat mor nep ost pra qui rel sen tov ulm ver wix".split()
FIELDS = 8
MAX_PIECES = 112
UNSEEN = 10**9


def invent_vocabulary(rng, count):
    words = set()
    while len(words) < count:
        words.add("".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))))
    return sorted(words)


class SubwordEncoder:
    """Learns merges from a word list and splits words greedily by merge rank."""

    def __init__(self, words, merges):
        pieces = {word: list(word) for word in words}
        letters = sorted({letter for word in words for letter in word})
        self.rank, self.ids = {}, {letter: n for n, letter in enumerate(letters, start=1)}
        for rank in range(merges):
            pairs = Counter()
            for symbols in pieces.values():
                pairs.update(zip(symbols, symbols[1:]))
            if not pairs:
                break
            best = max(pairs, key=pairs.get)
            self.rank[best] = rank
            self.ids.setdefault(best[0] + best[1], len(self.ids) + 1)
            pieces = {word: self.merge(symbols, best) for word, symbols in pieces.items()}

    @property
    def size(self):
        return len(self.ids) + 1

    @staticmethod
    def merge(symbols, pair):
        merged, i = [], 0
        while i < len(symbols):
            if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
                merged.append(symbols[i] + symbols[i + 1])
                i += 2
            else:
                merged.append(symbols[i])
                i += 1
        return merged

    def split(self, word):
        symbols = list(word)
        while len(symbols) > 1:
            rank, pair = min((self.rank.get(pair, UNSEEN), pair) for pair in zip(symbols, symbols[1:]))
            if rank == UNSEEN:
                break
            symbols = self.merge(symbols, pair)
        return symbols

    def encode(self, text):
        return [self.ids[piece] for word in text.split() for piece in self.split(word)]


class PatentAbstracts(Dataset):
    def __init__(self, count, seed, merges=160, words_per_text=32):
        rng = random.Random(seed)
        vocabulary = invent_vocabulary(rng, 480)
        jargon = [rng.sample(vocabulary, 40) for _ in range(FIELDS)]
        self.encoder = SubwordEncoder(vocabulary, merges)
        self.fields = [rng.randrange(FIELDS) for _ in range(count)]
        self.texts = []
        for field in self.fields:
            common = rng.choices(vocabulary, k=words_per_text - 12) + rng.choices(jargon[field], k=12)
            rng.shuffle(common)
            self.texts.append(" ".join(common))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        pieces = self.encoder.encode(self.texts[index])[:MAX_PIECES]
        padded = torch.zeros(MAX_PIECES, dtype=torch.long)
        padded[: len(pieces)] = torch.tensor(pieces)
        return padded, self.fields[index]


def patent_loader(count, batch_size, seed=0):
    dataset = PatentAbstracts(count, seed)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)
    return loader, dataset.encoder.size
