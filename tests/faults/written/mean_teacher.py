"""Semi-supervised classification of spectra with a mean teacher."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

BANDS, CLASSES = 640, 12
LABELLED, UNLABELLED = 2_000, 12_000
BATCH_L, BATCH_U = 24, 24


def make_spectra(count, seed):
    gen = torch.Generator().manual_seed(seed)
    axis = torch.linspace(0, 1, BANDS)
    label = torch.randint(0, CLASSES, (count,), generator=gen)
    centre = torch.rand(CLASSES, 4, 1, generator=torch.Generator().manual_seed(99))
    peaks = torch.exp(-((axis - centre) ** 2) / 0.0008).sum(dim=1)
    spectra = peaks[label] * (0.5 + torch.rand(count, 1, generator=gen))
    return spectra + 0.4 * torch.randn(count, BANDS, generator=gen), label


class SpectrumNet(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.hidden1, self.hidden2 = nn.Linear(BANDS, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = F.gelu(self.hidden1(x))
        x = F.dropout(F.gelu(self.norm(self.hidden2(x))), 0.1, self.training)
        return self.out(x)


class Teacher:
    """A copy of the student whose weights follow it slowly."""

    def __init__(self, student, momentum=0.995):
        self.momentum = momentum
        self.model = copy.deepcopy(student).eval().requires_grad_(False)

    @torch.no_grad()
    def predict(self, x):
        return self.model(x).softmax(dim=1)

    @torch.no_grad()
    def absorb(self, student):
        mine = {name: value.clone() for name, value in self.model.state_dict().items()}
        theirs = {name: value.detach().clone() for name, value in student.state_dict().items()}
        blended = {}
        for name in mine:
            kept = mine[name] * self.momentum
            fresh = theirs[name] * (1.0 - self.momentum)
            blended[name] = kept + fresh
        self.model.load_state_dict(blended)


def rampup(step, length=2_000, top=5.0):
    return top * min(1.0, step / length)


def main():
    torch.manual_seed(26)
    spectra, label = make_spectra(LABELLED, seed=27)
    free, _ = make_spectra(UNLABELLED, seed=28)
    check, check_label = make_spectra(600, seed=29)
    student = SpectrumNet()
    teacher = Teacher(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for step in range(60_000):
        known = torch.randint(0, LABELLED, (BATCH_L,))
        unknown = free[torch.randint(0, UNLABELLED, (BATCH_U,))]
        noisy = torch.cat([spectra[known], unknown + 0.1 * torch.randn_like(unknown)])
        logits = student(noisy)
        agreement = F.mse_loss(logits[BATCH_L:].softmax(dim=1), teacher.predict(unknown))
        loss = F.cross_entropy(logits[:BATCH_L], label[known]) + rampup(step) * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.absorb(student)
        if step % 200 == 0:
            accuracy = (teacher.predict(check).argmax(dim=1) == check_label).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} teacher accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
