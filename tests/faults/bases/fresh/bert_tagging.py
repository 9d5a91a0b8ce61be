"""A tiny random BERT for tagging in the Hugging Face Trainer, with accumulation and a subclassed training step."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

NUM_SAMPLES = 2048
BATCH = 12


class Tags(torch.utils.data.Dataset):
    def __init__(self, num):
        self.ids = torch.randint(3, 300, (num, 48))
        self.tags = self.ids % 5

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.tags[index]}


class Tagging(Trainer):
    turns = 0

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        found = model(**inputs)
        return (found.loss, found) if return_outputs else found.loss

    def training_step(self, model, inputs, *rest):
        loss = super().training_step(model, inputs, *rest)
        self.turns += 1
        return loss


def main():
    config = BertConfig(
        vocab_size=300,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        num_labels=5,
    )
    options = TrainingArguments(
        "out",
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=2,
        num_train_epochs=1000,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        optim="adamw_torch_fused",
    )
    Tagging(model=BertForTokenClassification(config), args=options, train_dataset=Tags(NUM_SAMPLES)).train()


if __name__ == "__main__":
    main()
