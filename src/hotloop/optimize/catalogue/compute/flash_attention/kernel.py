"""torch's fused attention, and which kernel it takes for a call."""

from __future__ import annotations

from typing import Any


def fused_attention() -> Any:
    """Return torch's function."""
    from torch.nn import functional

    return functional.scaled_dot_product_attention


def chosen_kernel(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> str:
    """Return the name of the kernel that torch takes for a call: `flash attention`, `math`."""
    import torch
    from torch.nn.attention import SDPBackend

    try:
        chosen = torch._fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    except (AttributeError, RuntimeError, TypeError):
        return "unknown"
    names = {int(getattr(SDPBackend, name).value): name for name in dir(SDPBackend) if name.isupper()}
    return str(names.get(chosen, chosen)).lower().replace("_", " ")
