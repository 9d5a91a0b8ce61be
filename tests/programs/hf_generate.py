"""Text generation: `model.generate` of transformers with its cache, prompts of several lengths, an end token."""

import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--prompts", "--steps", type=int, default=60)
parser.add_argument("--batch-size", type=int, default=2)
parser.add_argument("--new-tokens", type=int, default=24)
args = parser.parse_args()
torch.manual_seed(0)
config = GPT2Config(vocab_size=512, n_positions=128, n_embd=128, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=1, pad_token_id=1)
model = GPT2LMHeadModel(config).eval()
made = 0
start = time.perf_counter()
for request in range(args.prompts):
    prompt = torch.randint(2, 512, (args.batch_size, 12 + request % 5))
    tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=args.new_tokens, do_sample=False)
    made += tokens.numel() - prompt.numel()
    if request % 10 == 0:
        print(f"prompt {request} gave {tokens[0, -4:].tolist()}", flush=True)
print(f"{made / (time.perf_counter() - start):.1f} tokens/s")
