"""Separable convolutions on seven-segment digits; a small labelled set and a held-out set."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEGMENTS = {
    0: "abcdef", 1: "bc", 2: "abged", 3: "abgcd", 4: "fgbc",
    5: "afgcd", 6: "afgedc", 7: "abc", 8: "abcdefg", 9: "abcdfg",
}
BARS = {
    "a": (3, 5, 8, 24), "b": (5, 15, 22, 24), "c": (16, 27, 22, 24), "d": (27, 29, 8, 24),
    "e": (16, 27, 8, 10), "f": (5, 15, 8, 10), "g": (15, 17, 8, 24),
}


def render(n, seed, size=32):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (n,), generator=gen)
    stencils = torch.zeros(10, size, size)
    for digit, names in SEGMENTS.items():
        for name in names:
            top, bottom, left, right = BARS[name]
            stencils[digit, top:bottom, left:right] = 1.0
    images = stencils[labels] + 0.7 * torch.randn(n, size, size, generator=gen)
    return images.unsqueeze(1), labels


class SeparableBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depth = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.point = nn.Conv2d(channels, channels, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = F.silu(self.bn1(self.depth(x)))
        return F.silu(x + self.bn2(self.point(out)))


class DigitNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.layers = nn.Sequential(*[SeparableBlock(channels) for _ in range(3)])
        self.fc = nn.Linear(channels * 16, 10)

    def forward(self, x):
        x = self.layers(F.silu(self.stem(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 4).flatten(1))


def train_one_epoch(model, images, labels, optimizer, batch_size):
    model.train()
    for rows in torch.randperm(len(images)).split(batch_size):
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def test(model, images, labels, batch_size=200):
    model.eval()
    losses, outputs = [], []
    for x, y in zip(images.split(batch_size), labels.split(batch_size)):
        logits = model(x)
        losses.append(F.cross_entropy(logits, y))
        outputs.append(logits)
    loss = torch.stack(losses).mean()
    accuracy = (torch.cat(outputs).argmax(1) == labels).float().mean()
    return loss.item(), accuracy.item()


def main(epochs=1000, batch_size=32):
    torch.manual_seed(55)
    train_images, train_labels = render(256, seed=1)
    test_images, test_labels = render(1200, seed=2)
    model = DigitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [300, 600], gamma=0.2)
    for epoch in range(1, epochs + 1):
        train_loss = train_one_epoch(model, train_images, train_labels, optimizer, batch_size)
        test_loss, accuracy = test(model, test_images, test_labels)
        scheduler.step()
        print(f"epoch {epoch} train {train_loss:.4f} test {test_loss:.4f} accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
