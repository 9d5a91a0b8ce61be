"""Train a small GPT-2 on synthetic contract clauses with the Hugging Face Trainer."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

VOCAB = 512
CONTEXT = 64
CLAUSES = 8_000


class ClauseBlocks(Dataset):
    """Token blocks drawn from a sparse Markov chain and stored as one matrix."""

    def __init__(self, blocks, seed):
        gen = torch.Generator().manual_seed(seed)
        successors = torch.randint(1, VOCAB, (VOCAB, 5), generator=gen)
        tokens = torch.empty(blocks, CONTEXT, dtype=torch.long)
        tokens[:, 0] = torch.randint(1, VOCAB, (blocks,), generator=gen)
        for t in range(1, CONTEXT):
            branch = torch.randint(0, 5, (blocks,), generator=gen)
            tokens[:, t] = successors[tokens[:, t - 1], branch]
        self.tokens = tokens

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        row = self.tokens[i]
        return {"input_ids": row, "labels": row}


def build_model():
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=CONTEXT,
        n_embd=96,
        n_layer=3,
        n_head=4,
        resid_pdrop=0.05,
        embd_pdrop=0.05,
        attn_pdrop=0.05,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    return GPT2LMHeadModel(config)


def main():
    torch.manual_seed(14)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="clauses_"),
        num_train_epochs=120,
        per_device_train_batch_size=16,
        learning_rate=8e-4,
        weight_decay=0.05,
        warmup_steps=200,
        lr_scheduler_type="linear",
        logging_steps=50,
        logging_first_step=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=True,
        seed=14,
    )
    model = build_model()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    Trainer(model=model, args=arguments, train_dataset=ClauseBlocks(CLAUSES, seed=15)).train()


if __name__ == "__main__":
    main()
