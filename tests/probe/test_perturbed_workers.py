"""The perturbed run draws other random numbers in its loader workers too."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def test_workers_are_given_other_seeds_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.data._utils import worker

    from hotloop.probe.setup.seeds import _reseed_workers

    names = list(inspect.signature(worker._worker_loop).parameters)
    seen: list[tuple[Any, ...]] = []

    def loop(*args: Any) -> None:
        seen.append(args)

    loop.__signature__ = inspect.signature(worker._worker_loop)  # type: ignore[attr-defined]
    monkeypatch.setattr(worker, "_worker_loop", loop)
    _reseed_workers(3)
    worker._worker_loop(*range(len(names)))
    given = dict(zip(names, seen[0], strict=True))
    assert given.pop("base_seed") == names.index("base_seed") + 3
    assert given == {name: at for at, name in enumerate(names) if name != "base_seed"}
