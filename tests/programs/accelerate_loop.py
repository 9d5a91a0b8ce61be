"""An accelerate loop: `prepare`, `accumulate`, `backward`, `clip_grad_norm_`; evaluation with `gather_for_metrics`.

Runs as `python accelerate_loop.py` or `accelerate launch --cpu --num_processes 2 accelerate_loop.py`.
"""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, vocab=200, dim=64, tags=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True), 2)
        self.out = nn.Linear(dim, tags)

    def forward(self, tokens):
        return self.out(self.encoder(self.embed(tokens)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many micro-batches, 0 for all epochs")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--mixed_precision", choices=["no", "bf16"], default="no")
    parser.add_argument("--output_dir", default="runs/accelerate")
    args = parser.parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=args.mixed_precision, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(42)
    tokens = torch.randint(0, 200, (3000, 32))
    tags = (tokens + tokens.roll(1, 1)) % 8
    train_dataloader = DataLoader(TensorDataset(tokens[:2500], tags[:2500]), shuffle=True, batch_size=args.batch_size)
    eval_dataloader = DataLoader(TensorDataset(tokens[2500:], tags[2500:]), batch_size=64)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)
    done = 0
    for epoch in range(args.num_epochs):
        model.train()
        for step, (x, y) in enumerate(train_dataloader):
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            done += 1
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if done == args.steps:
                break
        model.eval()
        right = total = 0
        for x, y in eval_dataloader:
            with torch.no_grad():
                predictions = model(x).argmax(-1)
            predictions, references = accelerator.gather_for_metrics((predictions, y))
            right += (predictions == references).sum().item()
            total += references.numel()
        accelerator.print(f"epoch {epoch}: accuracy {right / total:.3f}")
        if done == args.steps:
            break
    accelerator.save_state(args.output_dir)


if __name__ == "__main__":
    main()
