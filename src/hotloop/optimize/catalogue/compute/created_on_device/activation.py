"""The activation of created_on_device: tensors are made where they are wanted, and moved once."""

from __future__ import annotations

import ast
import os
import weakref
from typing import Any, NamedTuple

from hotloop.optimize.catalogue.compute.created_on_device.pattern import Move, moves_of
from hotloop.optimize.evidence import evidence
from hotloop.probe.activation.knob import Knob

MAKE, MOVE = "_hotloop_made", "_hotloop_moved"
LARGEST = 1 << 26
"""Bytes of a tensor that is compared with what it was when it was moved; a larger one is moved again."""


class _Kept(NamedTuple):
    """A tensor on the host, as it was when it was moved, and what came of it."""

    source: Any
    version: int
    as_it_was: Any
    moved: Any
    moved_version: int


class DeviceMade(Knob):
    """Stands in for the moves of the user's source that need not be made.

    Args:
        at_once: from the start; else when it is switched.
    """

    def __init__(self, *, at_once: bool) -> None:
        self._is_on = at_once
        self._sites: list[str] = []
        self._num_made = 0
        self._num_kept = 0
        self._acted: set[int] = set()
        self._left: dict[int, str] = {}
        self._proven: set[int] = set()
        self._seen: dict[int, tuple[Any, int]] = {}
        self._kept: dict[int, _Kept] = {}

    def on_source(self, path: str, tree: Any, names: dict[str, Any]) -> bool:
        """Let the moves come by here."""
        moves = moves_of(tree)
        for move in moves:
            _change(move, len(self._sites))
            self._sites.append(f"{os.path.basename(path)}:{move.call.lineno}")
        names |= {MAKE: self.made, MOVE: self.moved}
        return bool(moves)

    def switch(self, on: bool) -> None:
        """Make and keep on the device, or as the program has it."""
        self._is_on = on
        self._seen.clear()
        self._kept.clear()

    # Made and moved ------------------------------------------------------------------------------------------------

    def made(
        self, site: int, factory: Any, args: Any, keywords: Any, how: str, *to: Any, **to_keywords: Any
    ) -> Any:
        """Return what `factory(...).to(...)` gives."""
        device = self._device(how, to, to_keywords) if self._is_on and site not in self._left else None
        if device is None:
            return getattr(factory(*args, **keywords), how)(*to, **to_keywords)
        if site not in self._proven:
            return self._prove(site, factory, args, keywords, how, to, to_keywords, device)
        self._num_made += 1
        return getattr(factory(*args, device=device, **keywords), how)(*to, **to_keywords)

    def _prove(
        self,
        site: int,
        factory: Any,
        args: Any,
        keywords: Any,
        how: str,
        to: Any,
        to_keywords: Any,
        device: Any,
    ) -> Any:
        """Return what the program makes, and see whether the device makes the same."""
        import torch

        own = getattr(factory(*args, **keywords), how)(*to, **to_keywords)
        other = getattr(factory(*args, device=device, **keywords), how)(*to, **to_keywords)
        like = (own.dtype, own.shape, own.stride(), own.device) == (
            other.dtype,
            other.shape,
            other.stride(),
            other.device,
        )
        same = like and (factory is torch.empty or own.is_meta or torch.equal(own, other))
        if same:
            self._proven.add(site)
            self._acted.add(site)
        else:
            self._left[site] = "the device makes other numbers"
        return own

    def moved(self, site: int, tensor: Any, how: str, *to: Any, **to_keywords: Any) -> Any:
        """Return what `tensor.to(...)` gives: the same again, where neither of the two has changed."""
        if not self._is_on or site in self._left or self._device(how, to, to_keywords, tensor) is None:
            return getattr(tensor, how)(*to, **to_keywords)
        kept = self._kept.get(site)
        if kept is not None and kept.moved._version != kept.moved_version:
            self._left[site] = "what was moved is changed in place"
        elif kept is not None and _is_as_it_was(kept, tensor, (how, to, to_keywords)):
            self._num_kept += 1
            self._acted.add(site)
            return kept.moved
        moved = getattr(tensor, how)(*to, **to_keywords)
        self._keep(site, tensor, moved)
        return moved

    def _keep(self, site: int, tensor: Any, moved: Any) -> None:
        """Keep what came by a second time as it was; a batch does not."""
        seen, version = self._seen.get(site, (None, 0))
        self._kept.pop(site, None)
        self._seen[site] = (weakref.ref(tensor), tensor._version)
        if seen is None or seen() is not tensor or version != tensor._version or site in self._left:
            return
        if tensor.numel() * tensor.element_size() <= LARGEST:
            self._kept[site] = _Kept(
                weakref.ref(tensor), tensor._version, tensor.clone(), moved, moved._version
            )

    def _device(self, how: str, to: Any, to_keywords: Any, tensor: Any = None) -> Any:
        """Return the device that a move goes to; None: it is left to torch."""
        import torch

        if torch.compiler.is_compiling():
            return None
        if tensor is not None and not (
            type(tensor) is torch.Tensor
            and tensor.device.type == "cpu"
            and not tensor.requires_grad
            and not tensor.is_inference()
        ):
            return None
        target = to_keywords.get("device", to[0] if to else "cuda" if how == "cuda" else None)
        if isinstance(target, torch.Tensor):
            target = target.device
        if isinstance(target, int) and not isinstance(target, bool):
            target = torch.device("cuda", target)
        if not isinstance(target, (str, torch.device)) or to_keywords.get("copy"):
            return None
        device = torch.device(target)
        return device if device.type != "cpu" else None

    def effect(self) -> tuple[bool, str]:
        """Return whether a move was saved, and where."""
        left = [f"{self._sites[site]}: {reason}" for site, reason in self._left.items()]
        if not self._num_made + self._num_kept:
            nothing = "no line that was read makes or moves the same tensor again" if not self._sites else ""
            unseen = (
                f"nothing was moved twice at {', '.join(self._sites)}" if self._sites and not left else ""
            )
            return False, evidence(nothing or unseen, left)
        at = ", ".join(sorted({self._sites[site] for site in self._acted}))
        said = f"{self._num_made} tensors were made on the device, {self._num_kept} moves of the same saved, at {at}"
        return True, evidence(said, left)


def _is_as_it_was(kept: _Kept, tensor: Any, how: Any) -> bool:
    """Whether the same is asked for of the same tensor with the same values; numpy may change them unseen."""
    import torch

    name, to, keywords = how
    if kept.source() is not tensor or tensor._version != kept.version:
        return False
    given = {key: value for key, value in keywords.items() if key != "non_blocking"}
    if getattr(kept.moved, name)(*to, **given) is not kept.moved:  # another device or type is asked for
        return False
    return bool(torch.equal(tensor, kept.as_it_was))


def _change(move: Move, site: int) -> None:
    """Change the call in place: who is called, and with what before its own arguments."""
    call, func = move.call, move.call.func
    assert isinstance(func, ast.Attribute)
    first: list[ast.expr] = [ast.Constant(site)]
    if move.made is not None:
        names = [ast.Constant(each.arg) for each in move.made.keywords]
        values = [each.value for each in move.made.keywords]
        first += [move.made.func, ast.Tuple(move.made.args, ast.Load()), ast.Dict([*names], values)]
    else:
        first.append(func.value)
    call.func = ast.Name(MAKE if move.made is not None else MOVE, ast.Load())
    call.args = [*first, ast.Constant(func.attr), *call.args]
    ast.fix_missing_locations(call)
