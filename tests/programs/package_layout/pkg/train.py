"""Trains on the spirals; started as a module."""

import argparse
import logging

import torch
from torch.nn import functional as F

from . import data, model, utils

log = logging.getLogger(__name__)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="pkg.train")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    utils.seed_everything(0)
    train_loader, val_loader = data.get_loaders(args.batch_size)
    net = model.build(args.hidden, depth=4)
    optimizer = torch.optim.NAdam(net.parameters(), lr=2e-3)
    smooth, done = utils.Smoothed(), 0
    for epoch in range(args.epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            smooth(loss.item())
            done += 1
            if done == args.steps:
                break
        with torch.inference_mode():
            accuracy = torch.cat([net(x).argmax(1) == y for x, y in val_loader]).float().mean().item()
        log.info("epoch %d loss %.4f val %.3f", epoch, smooth.value, accuracy)
        if done == args.steps:
            return


if __name__ == "__main__":
    main()
