"""Two ranks under torchrun, gradients summed by gloo, a convolutional classifier."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

NUM_SAMPLES = 2048
BATCH = 24


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    images = TensorDataset(torch.randn(NUM_SAMPLES, 3, 32, 32), torch.randint(0, 10, (NUM_SAMPLES,)))
    sampler = DistributedSampler(images)
    loader = DataLoader(images, batch_size=BATCH, sampler=sampler, drop_last=True)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    step = 0
    for epoch in range(1000):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            logits = model(images)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1


if __name__ == "__main__":
    main()
