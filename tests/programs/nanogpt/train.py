"""In the style of nanoGPT: batches sliced from a memory-mapped array, micro-steps, a GradScaler, no DataLoader.

Configuration is module globals, overridden by an executed file and `--key=value`; one of them shadows the builtin
`compile`. The first batch is fetched before the loop and the next one right after the forward. An evaluation runs at
iteration 0 and every `eval_interval`; the checkpoint holds the configuration.

    cd nanogpt && python train.py config/tiny.py --steps=60
"""

import math
import os
import time
from contextlib import nullcontext

import numpy as np
import torch
from model import GPT, GPTConfig

# -----------------------------------------------------------------------------
out_dir = "runs/out"
eval_interval = 50
log_interval = 5
eval_iters = 5
always_save_checkpoint = True
gradient_accumulation_steps = 4
batch_size = 8
block_size = 128
n_layer = 4
n_head = 4
n_embd = 128
dropout = 0.0
bias = False
learning_rate = 1e-3
steps = 60
weight_decay = 1e-1
beta1 = 0.9
beta2 = 0.99
grad_clip = 1.0
warmup_iters = 10
min_lr = 1e-4
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = "float16"
compile = False  # use PyTorch 2.0 to compile the model to be faster
# -----------------------------------------------------------------------------
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float, bool, str))]
exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "configurator.py")).read())
config = {k: globals()[k] for k in config_keys}
# -----------------------------------------------------------------------------

os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337)
np.random.seed(1337)
device_type = "cuda" if "cuda" in device else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)

data_dir = os.path.join(out_dir, "data")
os.makedirs(data_dir, exist_ok=True)
for split, size in (("train", 400_000), ("val", 40_000)):
    text = np.cumsum(np.random.randint(0, 3, size)) % 65  # a walk over the alphabet: learnable
    text.astype(np.uint16).tofile(os.path.join(data_dir, f"{split}.bin"))


def get_batch(split):
    # we recreate np.memmap every batch to avoid a memory leak
    data = np.memmap(os.path.join(data_dir, f"{split}.bin"), dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy((data[i : i + block_size]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + block_size]).astype(np.int64)) for i in ix])
    if device_type == "cuda":
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    return x.to(device), y.to(device)


model_args = dict(n_layer=n_layer, n_head=n_head, n_embd=n_embd, block_size=block_size, bias=bias, vocab_size=65, dropout=dropout)
model = GPT(GPTConfig(**model_args))
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == "float16"))
optimizer = model.configure_optimizers(weight_decay, learning_rate, (beta1, beta2), device_type)
if compile:
    print("compiling the model... (takes a ~minute)")
    unoptimized_model = model
    model = torch.compile(model)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            with ctx:
                logits, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    coeff = 0.5 * (1.0 + math.cos(math.pi * min(1.0, (it - warmup_iters) / max(1, steps - warmup_iters))))
    return min_lr + coeff * (learning_rate - min_lr)


X, Y = get_batch("train")  # fetch the very first batch
t0 = time.time()
iter_num = 0
best_val_loss = 1e9
running_mfu = -1.0
while True:
    for param_group in optimizer.param_groups:
        param_group["lr"] = get_lr(iter_num)

    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss or always_save_checkpoint:
            best_val_loss = losses["val"]
            if iter_num > 0:
                checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "model_args": model_args, "iter_num": iter_num, "config": config}
                torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))

    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")  # prefetch the next batch while the model is busy on the GPU
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    t1 = time.time()
    dt, t0 = t1 - t0, t1
    if iter_num % log_interval == 0:
        lossf = loss.item() * gradient_accumulation_steps
        print(f"iter {iter_num}: loss {lossf:.4f}, time {dt * 1000:.2f}ms", flush=True)
    iter_num += 1
    if iter_num > steps:
        break
