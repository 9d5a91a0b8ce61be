"""The blocks of a model: parts that are called one after the other, each with layers of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

MIN_PARTS = 2
"""Submodules with parameters that a block has; a single layer saves its input and little else."""


def unwrapped(module: Any) -> Any:
    """Return the model inside wrappers that hold nothing else (DistributedDataParallel)."""
    while len(module._modules) == 1 and "module" in module._modules:
        module = module._modules["module"]
    return module


def blocks(root: Any) -> dict[str, Any]:
    """Return the blocks by path: repeated ones, else the largest parts that the model is made of."""
    model = unwrapped(root)
    classes = Counter(type(part) for part in model.modules())
    return dict(_within(model, "", classes))


def _within(module: Any, path: str, classes: Counter[type]) -> Iterator[tuple[str, Any]]:
    from torch.nn import ModuleDict, ModuleList, Sequential

    for name, child in module.named_children():
        inner = f"{path}.{name}" if path else name
        if isinstance(child, (ModuleList, ModuleDict)):
            yield from _within(child, inner, classes)
        elif _num_parts(child) < MIN_PARTS:
            continue
        elif _holds_rows(child) or (type(child) is Sequential and any(map(_is_block, child.children()))):
            yield from _within(child, inner, classes)
        elif classes[type(child)] > 1:
            yield inner, child
        else:
            yield from dict(_within(child, inner, classes)).items() or [(inner, child)]


def _holds_rows(module: Any) -> bool:
    """Whether a module has a container with several blocks, which are then the ones to take."""
    from torch.nn import ModuleList, Sequential

    return any(
        isinstance(part, (ModuleList, Sequential)) and sum(map(_is_block, part.children())) > 1
        for part in module.modules()
        if part is not module
    )


def _is_block(module: Any) -> bool:
    return _num_parts(module) >= MIN_PARTS


def _num_parts(module: Any) -> int:
    return sum(1 for part in module.modules() if any(True for _ in part.parameters(recurse=False)))
