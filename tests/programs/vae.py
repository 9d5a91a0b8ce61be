"""A variational autoencoder: the forward returns a tuple, the loss is binary cross entropy on sigmoid outputs plus KL.

Evaluation and a picture of reconstructions and samples after every epoch.
"""

import argparse
import os

import torch
from PIL import Image
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="VAE Example")
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
parser.add_argument("--out", default="runs/vae")
args = parser.parse_args()
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def blobs(n):
    grid = torch.stack(torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij"))
    centres = torch.rand(n, 2, 1, 1) * 16 + 6
    return torch.exp(-((grid[None] - centres) ** 2).sum(1, keepdim=True) / (6 + 20 * torch.rand(n, 1, 1, 1)))


train_loader = DataLoader(TensorDataset(blobs(8192), torch.zeros(8192)), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(blobs(1024), torch.zeros(1024)), batch_size=args.batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch, done):
    model.train()
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        done += 1
        if batch_idx % 20 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)}]\tLoss: {loss.item() / len(data):.6f}", flush=True)
        if done == args.steps:
            break
    return done


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for i, (data, _) in enumerate(test_loader):
            recon_batch, mu, logvar = model(data.to(device))
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
            if i == 0:
                n = 8
                sheet = torch.cat([data[:n], recon_batch.view(-1, 1, 28, 28)[:n]]).view(2, n, 28, 28).permute(0, 2, 1, 3).reshape(56, 28 * n)
                Image.fromarray((sheet * 255).byte().cpu().numpy()).save(f"{args.out}/reconstruction_{epoch}.png")
    print(f"====> Test set loss: {test_loss / len(test_loader.dataset):.4f}")


if __name__ == "__main__":
    os.makedirs(args.out, exist_ok=True)
    done = 0
    for epoch in range(1, args.epochs + 1):
        done = train(epoch, done)
        test(epoch)
        if args.steps and done >= args.steps:
            break
