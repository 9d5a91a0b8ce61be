"""The activation of vectorized_loop: all turns of a loop in one call, once it was seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hotloop.optimize.catalogue.compute.vectorized_loop.pattern import row_loops
from hotloop.optimize.catalogue.compute.vectorized_loop.source_edit import CALL, put_beside
from hotloop.optimize.comparison.compare import ROUNDINGS
from hotloop.optimize.comparison.replaced_loops import ReplacedLoops
from hotloop.patterns.refusal import NotThis

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_SUMS = ("float", "complex", "int64")
"""Types that summing up keeps."""


class BatchedTurns(ReplacedLoops):
    """Makes the turns of loops over rows in one call."""

    loops: ClassVar[str] = "loop over rows whose turns are independent"

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._kinds: list[list[str]] = []

    def on_source(self, path: str, tree: Any, names: dict[str, Any]) -> bool:
        """Put the one call beside each loop that it may replace."""
        loops, left = row_loops(tree)
        self._kinds += [[each.kind for each in loop.results] for loop in loops]
        names[CALL] = self.all_rows
        return self._put(path, loops, left, put_beside)

    def all_rows(
        self, site: int, turn: Callable[..., Any], over: Sequence[Any], num: Any, called: Sequence[Any]
    ) -> Any:
        """Return what all turns of a loop give, each result by row; None: the loop is to run.

        What is appended to a list is a tensor of its own for each row, as the turns give it: the program may change it.
        """
        return self._instead(site, lambda: self._made(site, turn, over, num, called))

    def _made(
        self, site: int, turn: Callable[..., Any], over: Sequence[Any], num: Any, called: Sequence[Any]
    ) -> Any:
        import torch

        rows = _rows(over, num)
        if rows is None or not self._is_proven(site, lambda: self._prove(site, turn, rows, called)):
            return None
        made = torch.vmap(turn)(*rows)
        return [
            torch.unbind_copy(one) if kind == "append" else one
            for kind, one in zip(self._kinds[site], made, strict=True)
        ]

    def _prove(self, site: int, turn: Callable[..., Any], rows: Sequence[Any], called: Sequence[Any]) -> None:
        """See whether one call gives the values and the gradients that the turns give one by one.

        Raises:
            NotThis: it does not, or what it calls may do more than compute.
        """
        import torch

        for each in called:
            _require_plain(each)
        together = torch.vmap(turn)(*rows)
        _require_new(self._kinds[site], turn, rows)
        alone = [
            torch.stack(list(each)) for each in zip(*map(turn, *(row.unbind(0) for row in rows)), strict=True)
        ]
        for kind, one, other in zip(self._kinds[site], alone, together, strict=True):
            if one.dtype is not other.dtype or one.shape != other.shape:
                raise NotThis("its results are of another type or shape")
            if kind == "sum" and not str(one.dtype).removeprefix("torch.").startswith(_SUMS):
                raise NotThis(f"it adds up {one.dtype}")
            self._compare("results", one, other)
        for one, other in zip(*_gradients(alone, together, rows, called), strict=True):
            self._compare("gradients", one, other)

    def _compare(self, what: str, one: Any, other: Any) -> None:
        import torch

        if not one.is_floating_point() and not one.is_complex():
            if not torch.equal(one, other):
                raise NotThis(f"its {what} differ")
            return
        one, other = one.detach(), other.detach()
        if torch.equal(one.isnan(), other.isnan()):
            one, other = one.nan_to_num(), other.nan_to_num()
        apart = float((one - other).norm()) / max(float(one.norm()), 1e-30)
        if not apart <= ROUNDINGS * torch.finfo(one.dtype).eps:
            raise NotThis(f"its {what} differ by {apart:.1e}, more than rounding")
        self._differences.append(apart)


def _rows(over: Sequence[Any], num: Any) -> list[Any] | None:
    """Return the tensors that the turns take rows of, as many each; None: too few to be worth it.

    Raises:
        NotThis: something else than tensors is gone through.
    """
    import torch

    for each in over:
        if not isinstance(each, torch.Tensor) or each.dim() == 0 or each.is_sparse or each.is_nested:
            raise NotThis(f"it goes over a {type(each).__name__}")
    if num is not None and (not isinstance(num, int) or any(len(each) < num for each in over)):
        raise NotThis("it counts further than there are rows")
    count = min(len(each) for each in over) if num is None else num
    return [each[:count] for each in over] if count > 1 else None


def _require_plain(called: Any) -> None:
    """What a turn calls must be torch's own, and nobody may listen.

    Raises:
        NotThis: with the name of what is not.
    """
    import torch

    if not isinstance(called, torch.nn.Module):
        if not (getattr(called, "__module__", "") or "").startswith("torch"):
            raise NotThis(f"{getattr(called, '__name__', type(called).__name__)}() may do more than compute")
        return
    for module in called.modules():
        if not type(module).__module__.startswith("torch.nn.") or any(
            vars(module).get(name) for name in _HOOKS
        ):
            raise NotThis(f"{type(module).__name__} may do more than compute")


def _require_new(kinds: Sequence[str], turn: Callable[..., Any], rows: Sequence[Any]) -> None:
    """What a list gets must be made by the turn: a change of a part of something else would be lost.

    Raises:
        NotThis: two runs of a turn give the same memory.
    """
    runs = [turn(*(row[0] for row in rows)) for _ in range(2)]
    for kind, one, other in zip(kinds, *runs, strict=True):
        if kind == "append" and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
            raise NotThis("it appends parts of a tensor, which are not its own")


def _gradients(
    alone: Sequence[Any], together: Sequence[Any], rows: Sequence[Any], called: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the gradients of both ways to the rows and the parameters of what is called."""
    import torch

    modules = [each for each in called if isinstance(each, torch.nn.Module)]
    inputs = [row for row in rows if row.requires_grad]
    inputs += [
        parameter for module in modules for parameter in module.parameters() if parameter.requires_grad
    ]
    both = []
    for results in (alone, together):
        made = [each for each in results if each.requires_grad]
        if not made or not inputs:
            return [], []
        along = [
            torch.linspace(1, 2, each.numel(), dtype=each.dtype, device=each.device).view(each.shape)
            for each in made
        ]
        found = torch.autograd.grad(made, inputs, along, retain_graph=True, allow_unused=True)
        both.append([each for each in found if each is not None])
    if len(both[0]) != len(both[1]):
        raise NotThis("its gradients go elsewhere")
    return both[0], both[1]
