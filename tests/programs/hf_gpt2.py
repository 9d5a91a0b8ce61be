"""The Hugging Face Trainer on a tiny random GPT-2 with accumulation and gradient checkpointing; tokens, not samples, count."""

import argparse
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", default="runs/gpt2")
    args = parser.parse_args()
    set_seed(1)
    tokens = torch.randint(0, 4, (1024, 64)).cumsum(1) % 256
    rows = [{"input_ids": row, "labels": row} for row in tokens]
    config = GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    training_args = TrainingArguments(
        output_dir=args.out,
        max_steps=args.steps,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        gradient_checkpointing=True,
        learning_rate=1e-3,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        use_cpu=not torch.cuda.is_available(),
    )
    Trainer(model=GPT2LMHeadModel(config), args=training_args, train_dataset=rows).train()


if __name__ == "__main__":
    main()
