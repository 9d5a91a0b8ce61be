"""VAE on drawn faces."""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw
from torch import nn

SIDE = 28


def draw_faces(n, seed):
    rng = np.random.default_rng(seed)
    faces = np.zeros((n, SIDE, SIDE), dtype=np.float32)
    for i in range(n):
        canvas = Image.new("L", (SIDE, SIDE), 0)
        pen = ImageDraw.Draw(canvas)
        w = int(rng.integers(7, 12))
        pen.ellipse((14 - w, 3, 14 + w, 25), fill=int(rng.integers(120, 220)))
        eye = int(rng.integers(2, 5))
        pen.ellipse((8, 10, 8 + eye, 10 + eye), fill=20)
        pen.ellipse((20 - eye, 10, 20, 10 + eye), fill=20)
        pen.arc((9, 14, 19, 22), 10, 170, fill=10, width=2)
        faces[i] = np.asarray(canvas, dtype=np.float32) / 255.0
    return torch.from_numpy(faces)


class FaceVAE(nn.Module):
    def __init__(self, hidden=640, latent=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, hidden), nn.ReLU())
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, SIDE * SIDE))
        self.latent = latent

    def decode(self, z):
        return self.dec(z).view(-1, SIDE, SIDE)

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.decode(z), mu, logvar


def elbo(logits, x, mu, logvar, beta):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (rec + beta * kld) / x.shape[0]


class Gallery:
    """Writes a sheet of generated faces so that progress can be watched."""

    def __init__(self, folder, model, side=8, zoom=3, every=5):
        self.path = os.path.join(folder, "faces.png")
        self.model, self.side, self.zoom, self.every = model, side, zoom, every
        self.noise = torch.randn(side * side, model.latent)

    @torch.no_grad()
    def sheet(self):
        faces = torch.sigmoid(self.model.decode(self.noise)).numpy()
        grid = faces.reshape(self.side, self.side, SIDE, SIDE).swapaxes(1, 2).reshape(self.side * SIDE, -1)
        tint = np.stack([grid, grid**1.4, grid**2], axis=-1)
        return (tint * 255).astype(np.uint8)

    def after_step(self, step):
        if step % self.every:
            return
        picture = Image.fromarray(self.sheet())
        width, height = picture.size
        picture = picture.resize((width * self.zoom, height * self.zoom), Image.Resampling.BICUBIC)
        picture.save(self.path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=600)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--beta", type=float, default=1.0)
    args = p.parse_args()
    torch.manual_seed(30)
    faces = draw_faces(6400, seed=30)
    model = FaceVAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    gallery = Gallery(tempfile.mkdtemp(prefix="faces_"), model)
    step = 0
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(faces)).split(args.batch):
            x = faces[rows]
            logits, mu, logvar = model(x)
            loss = elbo(logits, x, mu, logvar, args.beta)
            opt.zero_grad()
            loss.backward()
            opt.step()
            gallery.after_step(step)
            step += 1
        print(f"epoch {epoch} elbo {loss.item():.2f}", flush=True)


if __name__ == "__main__":
    main()
