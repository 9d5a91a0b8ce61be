"""A transformer whose input and output embeddings are one tensor; an optimizer with a closure that returns the loss.

Checks at the end that the two are still the same storage.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(0)
VOCAB, DIM, LENGTH = 300, 96, 32


class TiedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decoder = nn.Linear(DIM, VOCAB, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.decoder.weight = self.embed.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)

    def forward(self, tokens):
        return self.decoder(self.encoder(self.embed(tokens) + self.pos, mask=self.mask, is_causal=True))


model = TiedLM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.randint(1, 5, (1000, LENGTH + 1)).cumsum(1) % VOCAB
for step in range(1, args.steps + 1):
    rows = data[torch.randint(0, len(data), (16,))]

    def closure():
        optimizer.zero_grad()
        logits = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
assert model.decoder.weight.data_ptr() == model.embed.weight.data_ptr(), "the tie is broken"
assert len(list(model.parameters())) == len({id(p) for p in model.parameters()})
print("still tied")
