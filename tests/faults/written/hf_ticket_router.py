"""Route support tickets to a queue with a small BERT trained from scratch."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

VOCAB = 800
MAX_LEN = 48
QUEUES = 5


class TicketDataset(Dataset):
    """Tickets encoded once into a padded id matrix."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, QUEUES, n)
        ids = rng.integers(10, VOCAB, (n, MAX_LEN))
        topic_words = 10 + labels[:, None] * 20 + rng.integers(0, 20, (n, MAX_LEN))
        ids = np.where(rng.random((n, MAX_LEN)) < 0.15, topic_words, ids)
        lengths = rng.integers(MAX_LEN // 2, MAX_LEN + 1, n)
        keep = np.arange(MAX_LEN)[None, :] < lengths[:, None]
        self.input_ids = torch.from_numpy(np.where(keep, ids, 0))
        self.attention_mask = torch.from_numpy(keep.astype(np.int64))
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {
            "input_ids": self.input_ids[i],
            "attention_mask": self.attention_mask[i],
            "labels": self.labels[i],
        }


def compute_metrics(prediction):
    guess = prediction.predictions.argmax(axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean())}


def main():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=MAX_LEN,
        num_labels=QUEUES,
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="tickets_"),
        num_train_epochs=60,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=5e-4,
        warmup_steps=100,
        weight_decay=0.01,
        lr_scheduler_type="cosine",
        logging_steps=100,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=TicketDataset(6_400, seed=1),
        eval_dataset=TicketDataset(512, seed=2),
        compute_metrics=compute_metrics,
    )
    trainer.train()


if __name__ == "__main__":
    main()
