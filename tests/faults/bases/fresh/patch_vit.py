"""A small vision transformer in micro-batches, with an exponential average of its weights."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_SAMPLES = 1024
BATCH = 16


def patches(num):
    pictures = torch.randn(num, 3, 32, 32)
    return pictures.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(num, 64, 48)


class Vit(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.embed = nn.Linear(48, width)
        self.place = nn.Parameter(torch.zeros(1, 64, width))
        layer = nn.TransformerEncoderLayer(
            width, 3, 3 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.layers(self.embed(x) + self.place).mean(1))


def main(micro=2):
    vit = Vit()
    slow = torch.optim.swa_utils.AveragedModel(
        vit, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    )
    adamw = torch.optim.AdamW(vit.parameters(), 1e-3, fused=True)
    feed = DataLoader(TensorDataset(patches(NUM_SAMPLES), torch.randint(0, 10, (NUM_SAMPLES,))), BATCH, True)
    turn = 0
    while True:
        for x, y in feed:
            guess = vit(x)
            loss = nn.functional.cross_entropy(guess, y) / micro
            loss.backward()
            turn += 1
            if turn % micro == 0:
                adamw.step()
                slow.update_parameters(vit)
                adamw.zero_grad()


main()
