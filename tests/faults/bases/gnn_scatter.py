"""Graphs of different sizes, message passing by index_add, one graph a step."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

NUM_SAMPLES = 48
BATCH = None


def make_graph(generator):
    nodes = int(torch.randint(1500, 2500, (1,), generator=generator))
    edges = torch.randint(0, nodes, (2, nodes * 8), generator=generator)
    return torch.randn(nodes, 64, generator=generator), edges, torch.randint(0, 5, (nodes,), generator=generator)


class Graphs(torch.utils.data.Dataset):
    def __init__(self, num):
        generator = torch.Generator().manual_seed(0)
        self.graphs = [make_graph(generator) for _ in range(num)]

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, number):
        return self.graphs[number]


class Layer(nn.Module):
    def __init__(self, wide_in, wide_out):
        super().__init__()
        self.own, self.neighbours = nn.Linear(wide_in, wide_out), nn.Linear(wide_in, wide_out, bias=False)

    def forward(self, nodes, edges):
        gathered = torch.zeros_like(nodes).index_add_(0, edges[1], nodes[edges[0]])
        return self.own(nodes) + self.neighbours(gathered / 8)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.out = Layer(64, width), Layer(width, width), nn.Linear(width, 5)

    def forward(self, nodes, edges):
        hidden = F.relu(self.first(nodes, edges))
        return self.out(F.relu(self.second(hidden, edges)))


def train(options):
    net = Net(options.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.lr, fused=True)
    graphs = DataLoader(Graphs(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
    step = 0
    for _ in range(10_000):
        for nodes, edges, classes in graphs:
            scores = net(nodes, edges)
            loss = F.cross_entropy(scores, classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    train(parser.parse_args())
