"""Image denoising with a small U-shaped network."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

SIZE = 40


def textures(n):
    coarse = torch.randn(n, 1, 6, 6)
    smooth = F.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic", align_corners=False)
    return smooth / smooth.std()


class Down(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, cout)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Up(nn.Module):
    def __init__(self, cin, skip, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin + skip, cout, 3, padding=1)
        self.norm = nn.GroupNorm(4, cout)

    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return F.silu(self.norm(self.conv(torch.cat([x, skip], dim=1))))


class DenoiseUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.first = nn.Conv2d(1, c, 3, padding=1)
        self.down1, self.down2 = Down(c, 2 * c), Down(2 * c, 4 * c)
        self.middle = nn.Conv2d(4 * c, 4 * c, 3, padding=1)
        self.up2, self.up1 = Up(4 * c, 2 * c, 2 * c), Up(2 * c, c, c)
        self.last = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x):
        a = F.silu(self.first(x))
        b = self.down1(a)
        c = F.silu(self.middle(self.down2(b)))
        return x - self.last(self.up1(self.up2(c, b), a))


class DenoisingRun:
    def __init__(self, images=2400, batch=12, noise=0.5, lr=1e-3):
        self.clean = textures(images)
        self.batch, self.noise = batch, noise
        self.net = DenoiseUNet()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2000, 0.7)
        self.op_seconds = 0.0

    def optimise(self, clean):
        noisy = clean + self.noise * torch.randn_like(clean)
        loss = F.mse_loss(self.net(noisy), clean)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.detach()

    def step(self, clean):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            loss = self.optimise(clean)
        averages = prof.key_averages()
        self.op_seconds += sum(entry.self_cpu_time_total for entry in averages) / 1e6
        return loss

    def fit(self, epochs):
        for epoch in range(epochs):
            order = torch.randperm(len(self.clean)).split(self.batch)
            losses = [self.step(self.clean[rows]) for rows in order]
            psnr = -10 * torch.log10(torch.stack(losses).mean())
            print(f"epoch {epoch} psnr {psnr.item():.2f} dB, {self.op_seconds:.1f}s in operators", flush=True)


if __name__ == "__main__":
    torch.manual_seed(14)
    DenoisingRun().fit(epochs=300)
