"""Whether a model reads sequences: if so, an integer matrix holds tokens, else it is a table of ids."""

from __future__ import annotations

from typing import Any

_NAMED = ("attention", "transformer", "lstm", "gru", "rnn", "mamba", "rwkv", "conv1d", "mixer")
"""In the names of classes that mix the positions of a sequence."""


def reads_sequences(module: Any) -> bool:
    """Whether a part of a model mixes positions: of its own kind, or of torch's."""
    return any(name in type(part).__name__.lower() for part in module.modules() for name in _NAMED)
