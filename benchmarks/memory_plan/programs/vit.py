"""ViT-L/16 as torchvision has it, ten classes, Adam, the gradients of the step before dropped after the forward.

`--precision`: fp32, 16-mixed (autocast and a scaler) or bf16-true; `--micro` batches between optimizer steps.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--precision", default="fp32")
parser.add_argument("--micro", type=int, default=0)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--layers", type=int, default=24)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--image", type=int, default=224)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, width // 64, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = self.attention(y, y, y, need_weights=False)[0] + x
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    def __init__(self, width, layers, image):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (image // 16) ** 2 + 1, width))
        self.blocks = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


model = ViT(args.width, args.layers, args.image)
kind = torch.bfloat16 if args.precision == "bf16-true" else torch.float32
model = model.to(device, kind)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-5)
mixed = args.precision == "16-mixed"
scaler = torch.amp.GradScaler(device, enabled=mixed)
for step in range(args.steps):
    model.train()
    images = torch.rand(args.batch, 3, args.image, args.image).to(device, kind)
    labels = torch.randint(0, 10, (args.batch,)).to(device)
    with torch.autocast(device, torch.float16, enabled=mixed):
        logits = model(images)
    logits = logits.float() if mixed else logits
    loss = nn.functional.cross_entropy(logits, labels) / max(1, args.micro)
    if not args.micro:
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    if not args.micro or step % args.micro == 0:
        scaler.step(optimizer)
        scaler.update()
        if args.micro:
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        right = (logits.argmax(1) == labels).sum()
