"""Character-level spelling repair: tag every typed character with an edit."""
import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

ALPHABET = " abcdefghijklmnopqrstuvwxyz"
PAD, OFFSET, DROP, MAX_CHARS = 0, 1, 0, 48


class Phrases(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        words = ["".join(rng.choices(ALPHABET[1:], k=rng.randint(3, 8))) for _ in range(900)]
        self.phrases = [" ".join(rng.choices(words, k=7))[:46] for _ in range(count)]

    def __len__(self):
        return len(self.phrases)

    def __getitem__(self, i):
        return {"text": self.phrases[i]}


class TypoCollator:
    """Types each phrase with errors and labels the typed characters."""

    def __init__(self, rate=0.12, seed=0):
        self.rate = rate
        self.rng = random.Random(seed)

    def type_badly(self, text):
        typed = []
        for char in text:
            roll = self.rng.random()
            if roll < self.rate / 3:
                continue
            typed.append(self.rng.choice(ALPHABET) if roll < 2 * self.rate / 3 else char)
            if roll > 1 - self.rate / 3:
                typed.append(self.rng.choice(ALPHABET))
        return "".join(typed)[:MAX_CHARS] or " "

    def align(self, typed, text):
        rows = [list(range(len(text) + 1))]
        for i, a in enumerate(typed, start=1):
            above, row = rows[-1], [i]
            for j, b in enumerate(text, start=1):
                row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b)))
            rows.append(row)
        labels, i, j = [DROP] * len(typed), len(typed), len(text)
        while i > 0 and j > 0:
            if rows[i][j] == rows[i - 1][j - 1] + (typed[i - 1] != text[j - 1]):
                labels[i - 1] = OFFSET + ALPHABET.index(text[j - 1])
                i, j = i - 1, j - 1
            elif rows[i][j] == rows[i - 1][j] + 1:
                i -= 1
            else:
                j -= 1
        return labels

    def __call__(self, examples):
        ids = torch.full((len(examples), MAX_CHARS), PAD)
        labels = torch.full((len(examples), MAX_CHARS), -100)
        for n, example in enumerate(examples):
            typed = self.type_badly(example["text"])
            ids[n, : len(typed)] = torch.tensor([OFFSET + ALPHABET.index(char) for char in typed])
            labels[n, : len(typed)] = torch.tensor(self.align(typed, example["text"]))
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


def main():
    torch.manual_seed(91)
    config = BertConfig(vocab_size=len(ALPHABET) + OFFSET, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=192, max_position_embeddings=MAX_CHARS, num_labels=len(ALPHABET) + OFFSET)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="spellfix_"),
        num_train_epochs=100,
        per_device_train_batch_size=32,
        learning_rate=1e-3,
        logging_steps=40,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=True,
    )
    trainer = Trainer(
        model=BertForTokenClassification(config),
        args=arguments,
        train_dataset=Phrases(9_600, seed=92),
        data_collator=TypoCollator(seed=93),
    )
    trainer.train()


if __name__ == "__main__":
    main()
