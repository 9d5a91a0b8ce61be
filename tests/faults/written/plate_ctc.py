"""Read number plates with a convolutional recurrent network and CTC."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HEIGHT, WIDTH, SYMBOLS, CHARACTERS = 24, 96, 16, 6


def make_plates(count, seed):
    glyphs = (torch.rand(SYMBOLS, 14, 10, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    gen = torch.Generator().manual_seed(seed)
    text = torch.randint(0, SYMBOLS, (count, CHARACTERS), generator=gen)
    image = torch.zeros(count, HEIGHT, WIDTH)
    for slot in range(CHARACTERS):
        left = 6 + 14 * slot
        image[:, 5:19, left : left + 10] = glyphs[text[:, slot]]
    contrast = 0.5 + torch.rand(count, 1, 1, generator=gen)
    image = image * contrast + 0.3 * torch.randn(image.shape, generator=gen)
    return TensorDataset(image.unsqueeze(1), text + 1)


class PlateReader(nn.Module):
    def __init__(self, hidden=56):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d((2, 1)),
            nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
        )
        self.read = nn.GRU(48, hidden, bidirectional=True, batch_first=True)
        self.symbol = nn.Linear(2 * hidden, SYMBOLS + 1)

    def forward(self, image):
        columns = self.look(image).mean(dim=2).transpose(1, 2)
        states, _ = self.read(columns)
        return self.symbol(states).log_softmax(dim=-1)


class Session:
    def __init__(self, batch=24):
        self.train_set = DataLoader(make_plates(3_600, 1), batch_size=batch, shuffle=True, drop_last=True)
        self.eval_set = DataLoader(make_plates(480, 2), batch_size=60)
        self.model = PlateReader()
        self.ctc = nn.CTCLoss(zero_infinity=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=4, factor=0.5)

    def loss(self, image, text):
        steps = self.model(image).transpose(0, 1)
        input_lengths = torch.full((image.size(0),), steps.size(0), dtype=torch.long)
        target_lengths = torch.full((image.size(0),), CHARACTERS, dtype=torch.long)
        return self.ctc(steps, text, input_lengths, target_lengths)

    def train_epoch(self, epoch):
        self.model.train()
        for step, (image, text) in enumerate(self.train_set):
            loss = self.loss(image, text)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} ctc {loss.item():.3f}", flush=True)

    @torch.inference_mode()
    def evaluate(self):
        self.model.eval()
        return torch.stack([self.loss(image, text) for image, text in self.eval_set]).mean().item()

    def run(self, epochs):
        for epoch in range(epochs):
            self.train_epoch(epoch)
            score = self.evaluate()
            self.plateau.step(score)
            print(f"epoch {epoch} held-out ctc {score:.3f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(51)
    Session().run(epochs=400)
