"""A WGAN with gradient penalty: the critic steps every batch, the generator every `n_critic`-th.

The penalty differentiates through a gradient (`create_graph=True`), so a double backward is needed.
"""

import argparse

import torch
import torch.nn as nn
from torch import autograd
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=0, help="stop after this many critic steps, 0 for all epochs")
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--latent_dim", type=int, default=64)
parser.add_argument("--n_critic", type=int, default=5)
parser.add_argument("--lambda_gp", type=float, default=10)
opt = parser.parse_args()
print(opt)
torch.manual_seed(0)
img_shape = (1, 28, 28)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(*block(opt.latent_dim, 128, normalize=False), *block(128, 256), *block(256, 512), nn.Linear(512, 784), nn.Tanh())

    def forward(self, z):
        return self.model(z).view(z.shape[0], *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.model = nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2, inplace=True), nn.Linear(512, 256), nn.LeakyReLU(0.2, inplace=True), nn.Linear(256, 1))

    def forward(self, img):
        return self.model(img.view(img.shape[0], -1))


generator, discriminator = Generator(), Discriminator()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
images = torch.sin(torch.linspace(0, 6, 784).view(1, *img_shape) * (1 + torch.rand(8192, 1, 1, 1)))
dataloader = DataLoader(TensorDataset(images), batch_size=opt.batch_size, shuffle=True)


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1, 1, 1)
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = torch.ones(real_samples.shape[0], 1)
    gradients = autograd.grad(outputs=d_interpolates, inputs=interpolates, grad_outputs=fake, create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


batches_done = 0
for epoch in range(opt.n_epochs):
    for i, (imgs,) in enumerate(dataloader):
        optimizer_D.zero_grad()
        z = torch.randn(imgs.shape[0], opt.latent_dim)
        fake_imgs = generator(z)
        gradient_penalty = compute_gradient_penalty(discriminator, imgs.data, fake_imgs.data)
        d_loss = -torch.mean(discriminator(imgs)) + torch.mean(discriminator(fake_imgs)) + opt.lambda_gp * gradient_penalty
        d_loss.backward()
        optimizer_D.step()
        optimizer_G.zero_grad()
        if i % opt.n_critic == 0:
            g_loss = -torch.mean(discriminator(generator(z)))
            g_loss.backward()
            optimizer_G.step()
        batches_done += 1
        if batches_done % 25 == 0:
            print("[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f]" % (epoch, opt.n_epochs, i, len(dataloader), d_loss.item(), g_loss.item()), flush=True)
        if batches_done == opt.steps:
            raise SystemExit(0)
