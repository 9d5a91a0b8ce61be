"""A model of transformers with random weights, trained as its Trainer does: AdamW in two groups, clipped, fp32."""

import argparse

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    ViTConfig,
    ViTForImageClassification,
)

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="gpt2")
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--length", type=int, default=16)
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--steps", type=int, default=6)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(42)


def ids(high):
    return torch.randint(0, high, (args.batch, args.length))


if args.model == "gpt2":
    model = GPT2LMHeadModel(GPT2Config(n_layer=args.layers))
    batch = {"input_ids": ids(50257), "attention_mask": ids(1) + 1, "labels": ids(50257)}
elif args.model == "bert":
    model = BertForMaskedLM(BertConfig(num_hidden_layers=args.layers))
    batch = {"input_ids": ids(30522), "attention_mask": ids(1) + 1, "labels": ids(30522)}
else:
    model = ViTForImageClassification(ViTConfig(num_labels=1000, num_hidden_layers=args.layers))
    batch = {
        "pixel_values": torch.rand(args.batch, 3, 224, 224),
        "labels": torch.randint(0, 1000, (args.batch,)),
    }
model = model.to(device).train()
groups = [[], []]
for name, parameter in model.named_parameters():
    groups["bias" in name or "norm" in name.lower() or "ln_" in name].append(parameter)
optimizer = torch.optim.AdamW([{"params": group, "weight_decay": 0.0} for group in groups], lr=5e-5)
for _ in range(args.steps):
    loss = model(**{name: value.to(device) for name, value in batch.items()}).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    model.zero_grad()
