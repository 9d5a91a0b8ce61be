"""Wasserstein GAN with gradient penalty for laboratory spectra."""
from dataclasses import dataclass

import torch
from torch import autograd, nn


@dataclass
class Experiment:
    bins: int = 256
    latent: int = 64
    width: int = 384
    batch: int = 128
    penalty: float = 10.0
    critic_rounds: int = 3
    lr: float = 1e-4
    iterations: int = 50_000
    cpu_threads: int = 16
    seed: int = 33


def mlp(sizes, activation):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def measured_spectra(n, bins):
    axis = torch.linspace(0, 1, bins)
    spectra = torch.zeros(n, bins)
    for centre in (0.2, 0.45, 0.7):
        shift = centre + 0.03 * torch.randn(n, 1)
        height = torch.rand(n, 1) + 0.3
        spectra += height / (1 + ((axis - shift) / 0.02) ** 2)
    return spectra


class WassersteinGAN:
    def __init__(self, exp):
        self.exp = exp
        w = exp.width
        self.generator = mlp([exp.latent, w, w, exp.bins], nn.ReLU)
        self.critic = mlp([exp.bins, w, w, 1], lambda: nn.LeakyReLU(0.2))
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=exp.lr, betas=(0.0, 0.9), fused=True)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=exp.lr, betas=(0.0, 0.9), fused=True)

    def fake(self):
        return self.generator(torch.randn(self.exp.batch, self.exp.latent))

    def gradient_penalty(self, real, fake):
        mix = torch.rand(len(real), 1)
        point = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (grad,) = autograd.grad(self.critic(point).sum(), point, create_graph=True)
        return (grad.norm(2, dim=1) - 1).square().mean()

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.fake()
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = -distance + self.exp.penalty * self.gradient_penalty(real, fake)
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        return distance.detach()

    def generator_step(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.fake()).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.critic.requires_grad_(True)


def prepare_runtime(exp):
    torch.manual_seed(exp.seed)
    torch.set_num_threads(exp.cpu_threads)


def main():
    exp = Experiment()
    prepare_runtime(exp)
    spectra = measured_spectra(20_000, exp.bins)
    gan = WassersteinGAN(exp)
    for iteration in range(exp.iterations):
        for _ in range(exp.critic_rounds):
            distance = gan.critic_step(spectra[torch.randint(0, len(spectra), (exp.batch,))])
        gan.generator_step()
        if iteration % 50 == 0:
            print(f"iteration {iteration} wasserstein estimate {distance.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
