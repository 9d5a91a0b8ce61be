"""A small random causal language model in the Hugging Face Trainer, with a callback of one's own."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

NUM_SAMPLES = 4096
BATCH = 8


class Words(Dataset):
    def __init__(self, num):
        self.words = torch.randint(0, 400, (num, 64), generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.words[index]}


class Count(TrainerCallback):
    def __init__(self):
        self.steps = 0

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self.steps += 1


class Language(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss
        return (loss, outputs) if return_outputs else loss


def main():
    config = GPT2Config(vocab_size=400, n_positions=64, n_embd=128, n_layer=3, n_head=4, use_cache=False)
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=BATCH, max_steps=100000, learning_rate=5e-4, use_cpu=True,
        save_strategy="no", logging_steps=500, report_to=[], disable_tqdm=True, optim="adamw_torch_fused",
    )
    trainer = Language(
        model=GPT2LMHeadModel(config), args=arguments, train_dataset=Words(NUM_SAMPLES), callbacks=[Count()]
    )
    trainer.train()


if __name__ == "__main__":
    main()
