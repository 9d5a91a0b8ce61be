"""Validation in the manner of timm: `validate(loader)` under `inference_mode`, average meters, top-1 and top-5, a log."""

import argparse
import json
import time
from collections import OrderedDict

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=16)
parser.add_argument("--batches", "--steps", type=int, default=120)
parser.add_argument("-j", "--workers", type=int, default=0)
parser.add_argument("--log-freq", type=int, default=20)
parser.add_argument("--amp", action="store_true")


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.bn2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.act = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        return self.act(self.bn2(self.conv2(y)) + self.downsample(x))


def create_model():
    widths = (24, 32, 64)
    layers = [nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)]
    layers += [Residual(a, b, 2) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


def accuracy(output, target, topk=(1,)):
    pred = output.topk(max(topk), 1)[1].t()
    correct = pred.eq(target.reshape(1, -1).expand_as(pred))
    return [correct[:k].reshape(-1).float().sum(0) * 100.0 / target.size(0) for k in topk]


def validate(args):
    torch.manual_seed(0)
    model = create_model()
    with torch.no_grad():  # a trained model's statistics are not those it was made with
        for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm2d)):
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)
            norm.weight.uniform_(0.5, 1.5)
    criterion = nn.CrossEntropyLoss()
    images = torch.randn(args.batches * args.batch_size, 3, 64, 64)
    dataset = TensorDataset(images, torch.randint(0, 10, (len(images),)))
    loader = DataLoader(dataset, batch_size=args.batch_size, num_workers=args.workers)
    batch_time, losses, top1, top5 = AverageMeter(), AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    with torch.inference_mode():
        end = time.time()
        for batch_idx, (input, target) in enumerate(loader):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.amp):
                output = model(input)
                loss = criterion(output, target)
            acc1, acc5 = accuracy(output.detach(), target, topk=(1, 5))
            losses.update(loss.item(), input.size(0))
            top1.update(acc1.item(), input.size(0))
            top5.update(acc5.item(), input.size(0))
            batch_time.update(time.time() - end)
            end = time.time()
            if batch_idx % args.log_freq == 0:
                print(
                    f"Test: [{batch_idx:>4d}/{len(loader)}] Time: {batch_time.val:.3f}s ({batch_time.avg:.3f}s) "
                    f"Loss: {losses.val:>7.4f} ({losses.avg:>6.4f}) Acc@1: {top1.val:>7.3f} Acc@5: {top5.val:>7.3f}"
                )
    return OrderedDict(top1=round(top1.avg, 4), top5=round(top5.avg, 4), loss=losses.avg, param_count=sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    print(json.dumps(validate(parser.parse_args()), indent=4))
