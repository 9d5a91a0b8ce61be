"""The Hugging Face Trainer on a tiny randomly initialized BERT; nothing is downloaded.

The data set has a column the model does not take (`note`), which the Trainer drops by reading the signature of `forward`.
"""

import argparse
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Sentences(Dataset):
    """Random words; the label says whether the first half holds more high words than the second."""

    def __init__(self, n, seed, length=48):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 500, (n, length), generator=g)
        half = length // 2
        self.labels = (self.ids[:, :half].float().mean(1) > self.ids[:, half:].float().mean(1)).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "labels": self.labels[i], "note": f"row {i}"}


def compute_metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, axis=1) == pred.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--out", default="runs/hf")
    args = parser.parse_args()
    set_seed(0)
    config = BertConfig(vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, max_position_embeddings=64)
    training_args = TrainingArguments(
        output_dir=args.out,
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accumulate,
        max_steps=args.steps,
        learning_rate=1e-3,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=60,
        save_steps=60,
        report_to=[],
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training_args,
        train_dataset=Sentences(4000, 0),
        eval_dataset=Sentences(400, 1),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print("final", trainer.evaluate())


if __name__ == "__main__":
    main()
