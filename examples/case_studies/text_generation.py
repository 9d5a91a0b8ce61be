"""The program of case study 6: a small language model that continues prompts, with each change as an option.

    python text_generation.py --cache --half
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=192)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--prompt", type=int, default=64, help="tokens of a prompt")
parser.add_argument("--new", type=int, default=48, help="tokens that are generated for each")
parser.add_argument("--requests", "--steps", type=int, default=100_000)
parser.add_argument("--cache", action="store_true", help="keep keys and values of the tokens before")
parser.add_argument("--inference-mode", action="store_true")
parser.add_argument("--half", action="store_true", help="weights in bfloat16")
parser.add_argument("--compile", action="store_true")
VOCABULARY, HEADS = 1024, 6


class Block(nn.Module):
    """Attention and a small network, both before what they are added to."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x)), (k, v)


class Model(nn.Module):
    """Logits of the last token, and the keys and values of all."""

    def __init__(self, width, layers, longest):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, cache=None):
        begin = 0 if cache is None else cache[0][0].size(2)
        x = self.tokens(tokens) + self.places(torch.arange(begin, begin + tokens.size(1), device=tokens.device))
        kept = []
        for at, block in enumerate(self.blocks):
            x, pair = block(x, None if cache is None else cache[at])
            kept.append(pair)
        return self.head(self.norm(x[:, -1])), kept


def generate(model, prompt, num, *, cached):
    """Return the prompt with so many tokens more, the likeliest each time."""
    text, cache = prompt, None
    for at in range(num):
        given = text[:, -1:] if cached and at else text
        logits, kept = model(given, cache)
        cache = kept if cached else None
        text = torch.cat([text, logits.argmax(-1, keepdim=True)], 1)
    return text


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model(args.width, args.layers, args.prompt + args.new).to(device).eval()
    if args.half:
        model.to(torch.bfloat16)
    if args.compile:
        model.compile(dynamic=True)
    with torch.inference_mode() if args.inference_mode else torch.no_grad():
        for request in range(args.requests):
            prompt = torch.randint(0, VOCABULARY, (args.batch_size, args.prompt), device=device)
            text = generate(model, prompt, args.new, cached=args.cache)
            if request % 20 == 0:
                print(f"request {request} ends with {text[0, -4:].tolist()}", flush=True)


if __name__ == "__main__":
    main()
