"""Encoder-decoder transformer that learns to reverse token sequences."""
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BOS = 0


@dataclass
class ReverseConfig:
    vocab: int = 24
    length: int = 14
    examples: int = 8000
    dim: int = 48
    heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 3
    batch_size: int = 2
    lr: float = 4e-4
    epochs: int = 40
    seed: int = 101


class ReversalTask(Dataset):
    def __init__(self, cfg):
        gen = torch.Generator().manual_seed(cfg.seed)
        self.source = torch.randint(1, cfg.vocab, (cfg.examples, cfg.length), generator=gen)
        target = self.source.flip(1)
        begin = torch.full((cfg.examples, 1), BOS)
        self.decoder_input = torch.cat([begin, target[:, :-1]], dim=1)
        self.target = target

    def __len__(self):
        return len(self.source)

    def __getitem__(self, i):
        return self.source[i], self.decoder_input[i], self.target[i]


class Reverser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.position = nn.Parameter(torch.randn(cfg.length, cfg.dim) * 0.1)
        self.transformer = nn.Transformer(
            d_model=cfg.dim,
            nhead=cfg.heads,
            num_encoder_layers=cfg.encoder_layers,
            num_decoder_layers=cfg.decoder_layers,
            dim_feedforward=2 * cfg.dim,
            dropout=0.0,
            batch_first=True,
        )
        self.project = nn.Linear(cfg.dim, cfg.vocab)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(cfg.length))

    def forward(self, source, decoder_input):
        src = self.embed(source) + self.position
        tgt = self.embed(decoder_input) + self.position
        hidden = self.transformer(src, tgt, tgt_mask=self.causal, tgt_is_causal=True)
        return self.project(hidden)


class Meter:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def add(self, value):
        self.total += value
        self.count += 1

    def mean(self):
        return self.total.item() / max(1, self.count)


def train(cfg):
    torch.manual_seed(cfg.seed)
    loader = DataLoader(ReversalTask(cfg), batch_size=cfg.batch_size, shuffle=True)
    model = Reverser(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, fused=True)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        meter = Meter()
        for step, (source, decoder_input, target) in enumerate(loader):
            logits = model(source, decoder_input)
            loss = criterion(logits.transpose(1, 2), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.add(loss.detach())
            if step % 500 == 499:
                print(f"epoch {epoch} step {step + 1} loss {meter.mean():.4f}", flush=True)
                meter = Meter()


if __name__ == "__main__":
    config = ReverseConfig()
    print(asdict(config))
    train(config)
