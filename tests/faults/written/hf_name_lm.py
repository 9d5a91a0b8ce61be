"""Train a tiny GPT-2 to invent place names, with the Hugging Face Trainer."""
import random
import tempfile
from dataclasses import dataclass, field

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed

ALPHABET = "abcdefghijklmnopqrstuvwxyz-\n"
SYLLABLES = ["mar", "ton", "ville", "bor", "ough", "wick", "ham", "stead", "by", "ley", "ford", "dale", "el", "o"]


@dataclass
class RunOptions:
    block: int = field(default=48)
    train_blocks: int = field(default=4000)
    eval_blocks: int = field(default=512)
    eval_every: int = field(default=10)
    epochs: int = field(default=40)
    batch: int = field(default=16)
    lr: float = field(default=1e-3)


def invent_text(n_chars, rng):
    pieces, total = [], 0
    while total < n_chars:
        name = "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4)))
        if rng.random() < 0.2:
            name += "-" + rng.choice(SYLLABLES)
        pieces.append(name + "\n")
        total += len(name) + 1
    return "".join(pieces)


class CharBlocks(Dataset):
    def __init__(self, blocks, length, seed):
        index = {c: i for i, c in enumerate(ALPHABET)}
        text = invent_text(blocks * length, random.Random(seed))
        ids = torch.tensor([index[c] for c in text])
        self.blocks = ids[: blocks * length].view(blocks, length)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        block = self.blocks[i]
        return {"input_ids": block, "labels": block}


def build_trainer(options):
    config = GPT2Config(
        vocab_size=len(ALPHABET),
        n_positions=options.block,
        n_embd=64,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="names_"),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=2 * options.batch,
        learning_rate=options.lr,
        eval_strategy="steps",
        eval_steps=options.eval_every,
        logging_steps=50,
        save_strategy="no",
        prediction_loss_only=True,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    return Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=CharBlocks(options.train_blocks, options.block, seed=1),
        eval_dataset=CharBlocks(options.eval_blocks, options.block, seed=2),
    )


def main():
    (options,) = HfArgumentParser(RunOptions).parse_args_into_dataclasses()
    set_seed(42)
    trainer = build_trainer(options)
    result = trainer.train()
    print(result.metrics)


if __name__ == "__main__":
    main()
