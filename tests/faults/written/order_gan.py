"""Conditional hinge GAN that invents rows of a table of shop orders."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    rows: int = 30_000
    columns: int = 28
    segments: int = 6
    noise: int = 48
    width: int = 384
    batch: int = 256
    lr_d: float = 3e-4
    lr_g: float = 1e-4
    rounds: int = 100_000


def order_table(cfg):
    gen = torch.Generator().manual_seed(31)
    segment = torch.randint(0, cfg.segments, (cfg.rows,), generator=gen)
    centre = torch.randn(cfg.segments, cfg.columns, generator=gen)
    mix = torch.randn(cfg.segments, 8, cfg.columns, generator=gen) / 3
    factor = torch.randn(cfg.rows, 8, generator=gen)
    table = torch.empty(cfg.rows, cfg.columns)
    for s in range(cfg.segments):
        member = segment == s
        table[member] = centre[s] + factor[member] @ mix[s]
    return torch.tanh(table), segment


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.LeakyReLU(0.2))


class RowMaker(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.segment = nn.Embedding(cfg.segments, 16)
        self.body = nn.Sequential(block(cfg.noise + 16, cfg.width), block(cfg.width, cfg.width),
                                  nn.Linear(cfg.width, cfg.columns), nn.Tanh())

    def forward(self, noise, segment):
        return self.body(torch.cat([noise, self.segment(segment)], dim=1))


class RowJudge(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.segment = nn.Embedding(cfg.segments, cfg.width)
        self.body = nn.Sequential(block(cfg.columns, cfg.width), block(cfg.width, cfg.width))
        self.score = nn.Linear(cfg.width, 1)

    def forward(self, row, segment):
        h = self.body(row)
        return self.score(h).squeeze(1) + (h * self.segment(segment)).mean(dim=1)


def judge_step(judge, maker, optimizer, row, segment, noise):
    with torch.no_grad():
        fake = maker(noise, segment)
    real_score, fake_score = judge(torch.cat([row, fake]), torch.cat([segment, segment])).chunk(2)
    loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def maker_step(judge, maker, optimizer, segment, noise):
    judge.requires_grad_(False)
    loss = -judge(maker(noise, segment), segment).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    judge.requires_grad_(True)
    return loss


def train(cfg):
    torch.manual_seed(30)
    table, segments = order_table(cfg)
    maker, judge = RowMaker(cfg), RowJudge(cfg)
    maker_opt = torch.optim.Adam(maker.parameters(), lr=cfg.lr_g, betas=(0.0, 0.99))
    judge_opt = torch.optim.Adam(judge.parameters(), lr=cfg.lr_d, betas=(0.0, 0.99))
    for number in range(cfg.rounds):
        pick = torch.randint(0, cfg.rows, (cfg.batch,))
        segment = segments[pick]
        d_loss = judge_step(judge, maker, judge_opt, table[pick], segment, torch.randn(cfg.batch, cfg.noise))
        g_loss = maker_step(judge, maker, maker_opt, segment, torch.randn(cfg.batch, cfg.noise))
        if number % 100 == 0:
            print(f"round {number:6d} judge {d_loss.item():.3f} maker {g_loss.item():.3f}", flush=True)


if __name__ == "__main__":
    train(Settings())
