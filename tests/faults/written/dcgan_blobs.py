import argparse

import torch
from torch import nn, optim


def weights_init(m):
    name = m.__class__.__name__
    if "Conv" in name:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False),
        )

    def forward(self, img):
        return self.main(img).flatten()


def blob_images(n, size=32):
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    cx, cy = torch.empty(n, 1, 1).uniform_(-0.6, 0.6), torch.empty(n, 1, 1).uniform_(-0.6, 0.6)
    r = torch.empty(n, 1, 1).uniform_(0.1, 0.4)
    img = torch.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / r**2)
    return (img * 2 - 1).unsqueeze(1)


def main(opt):
    torch.manual_seed(opt.seed)
    images = blob_images(opt.images)
    net_g = Generator(opt.nz, opt.ngf).apply(weights_init)
    net_d = Discriminator(opt.ndf).apply(weights_init)
    criterion = nn.BCEWithLogitsLoss()
    opt_d = optim.Adam(net_d.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    opt_g = optim.Adam(net_g.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    real_label = torch.full((opt.batch,), 0.9)
    fake_label = torch.zeros(opt.batch)
    valid = torch.ones(opt.batch)

    for epoch in range(opt.epochs):
        order = torch.randperm(len(images))
        for i in range(len(images) // opt.batch):
            real = images[order[i * opt.batch : (i + 1) * opt.batch]]

            net_d.zero_grad()
            err_real = criterion(net_d(real), real_label)
            fake = net_g(torch.randn(opt.batch, opt.nz, 1, 1))
            err_fake = criterion(net_d(fake.detach()), fake_label)
            err_d = err_real + err_fake
            err_d.backward()
            opt_d.step()

            net_g.zero_grad()
            err_g = criterion(net_d(fake), valid)
            err_g.backward()
            opt_g.step()

            if i % 40 == 0:
                print(f"[{epoch}/{opt.epochs}][{i}] D {err_d.item():.4f} G {err_g.item():.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--images", type=int, default=5120)
    p.add_argument("--nz", type=int, default=48)
    p.add_argument("--ngf", type=int, default=24)
    p.add_argument("--ndf", type=int, default=24)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--seed", type=int, default=999)
    main(p.parse_args())
