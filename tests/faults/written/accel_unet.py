"""Segment round lesions with a small U-Net, using accelerate and gradient accumulation."""
import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self, base=16):
        super().__init__()
        self.enc1 = conv_block(1, base)
        self.enc2 = conv_block(base, base * 2)
        self.mid = conv_block(base * 2, base * 4)
        self.up2 = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.dec2 = conv_block(base * 4, base * 2)
        self.up1 = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.dec1 = conv_block(base * 2, base)
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        m = self.mid(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([self.up2(m), e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.head(d1)


def dice_loss(logits, mask):
    p = torch.sigmoid(logits)
    inter = (p * mask).sum((1, 2, 3))
    return 1 - ((2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def lesions(n, size=48):
    axis = torch.arange(size, dtype=torch.float32)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    cy, cx = torch.rand(2, n, 1, 1) * (size - 16) + 8
    radius = torch.rand(n, 1, 1) * 6 + 3
    mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < radius**2).float().unsqueeze(1)
    image = 0.6 * mask + 0.4 * torch.randn(n, 1, size, size)
    return TensorDataset(image, mask)


def evaluate(accelerator, model, loader):
    model.eval()
    total, count = torch.zeros(()), 0
    with torch.inference_mode():
        for image, mask in loader:
            total += dice_loss(model(image), mask) * len(image)
            count += len(image)
    model.train()
    accelerator.print(f"    val dice {1 - total.item() / count:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(21)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate)
    train_loader = DataLoader(lesions(1600), batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(lesions(96), batch_size=32)
    model = SmallUNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9995)
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, val_loader, scheduler
    )
    for epoch in range(args.epochs):
        for step, (image, mask) in enumerate(train_loader):
            with accelerator.accumulate(model):
                logits = model(image)
                loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step % 50 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        evaluate(accelerator, model, val_loader)


if __name__ == "__main__":
    main()
