"""Dialogue intent classification with a small DistilBERT and weight monitoring."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

VOCAB, TURN, INTENTS = 800, 32, 7


class Turns(Dataset):
    def __init__(self, count, seed):
        gen = torch.Generator().manual_seed(seed)
        self.intent = torch.randint(0, INTENTS, (count,), generator=gen)
        filler = torch.randint(100, VOCAB, (count, TURN), generator=gen)
        keyword = 10 + 10 * self.intent.unsqueeze(1) + torch.randint(0, 10, (count, TURN), generator=gen)
        self.ids = torch.where(torch.rand(count, TURN, generator=gen) < 0.2, keyword, filler)

    def __len__(self):
        return len(self.intent)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.intent[i]}


class RankMonitor(TrainerCallback):
    """Follows the effective rank of the weight matrices during training."""

    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.rank = {}

    @staticmethod
    def effective_rank(matrix):
        spectrum = torch.linalg.svdvals(matrix)
        share = spectrum / spectrum.sum()
        return torch.exp(-(share * torch.log(share + 1e-9)).sum())

    @torch.no_grad()
    def on_step_end(self, args, state, control, model=None, **kwargs):
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                now = self.effective_rank(weight)
                self.rank[name] = torch.lerp(now, self.rank.get(name, now), self.momentum)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if self.rank:
            lowest = min(self.rank, key=lambda name: self.rank[name].item())
            print(f"step {state.global_step} lowest rank {self.rank[lowest].item():.1f} in {lowest}", flush=True)


def intent_model():
    return DistilBertForSequenceClassification(
        DistilBertConfig(
            vocab_size=VOCAB,
            max_position_embeddings=TURN,
            dim=96,
            hidden_dim=192,
            n_layers=3,
            n_heads=4,
            num_labels=INTENTS,
        )
    )


def main():
    torch.manual_seed(33)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="intent_"),
        max_steps=50_000,
        per_device_train_batch_size=32,
        learning_rate=6e-4,
        lr_scheduler_type="constant",
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=True,
    )
    trainer = Trainer(
        model=intent_model(),
        args=arguments,
        train_dataset=Turns(12_000, seed=34),
        callbacks=[RankMonitor()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
