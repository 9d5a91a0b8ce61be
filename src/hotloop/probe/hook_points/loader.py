"""Hook point `data`: iteration of DataLoaders and the batches they yield; their keywords where an activation asks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.frameless import Before, TimedSlot
from hotloop.probe.hook_points.sample_draws import draws_once
from hotloop.probe.probe import Probe
from hotloop.probe.record.call_site import user_line
from hotloop.probe.record.events import MAX_SLOT, Kind
from hotloop.probe.record.samples import look_once
from hotloop.probe.sections import Section, section

_SLOT = "_hotloop_slot"
Orders = dict[int, tuple[int, Callable[[], Any]]]
"""Slots of loaders with a weak reference to what gives them their batches, by its identity."""
_SAME = ("path", "line", "batch_size", "dataset", "dataset_len", "sampler")
"""A loader that is made anew every epoch, equal in these, is the same loader."""


def install(probe: Probe) -> None:
    """Patch the loader classes; class methods, so that names imported earlier are the same objects."""
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

    if probe.acting("on_loader"):
        _patch_init(probe, DataLoader)
    _note_when_made(probe, DataLoader)
    _patch_iter(probe, DataLoader, _BaseDataLoaderIter)
    _patch_next(probe, _BaseDataLoaderIter)
    _patch_shutdown(probe, _MultiProcessingDataLoaderIter)


# Construction ------------------------------------------------------------------------------------------------------


def _patch_init(probe: Probe, cls: Any) -> None:
    original = cls.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        # A subclass may call this with what it likes; only what torch itself would accept is touched.
        with probe.survive("loader.keywords"):
            wanted = _keywords(probe, signature, self, args, kwargs)
            if wanted is not None and _construct(probe, original, self, wanted):
                return
        original(self, *args, **kwargs)

    init.__signature__ = signature  # type: ignore[attr-defined]  # `inspect.getfullargspec` does not unwrap
    cls.__init__ = init


def _note_when_made(probe: Probe, cls: Any) -> None:
    """Look at a loader in the last thing that its `__init__` calls; it is called again whenever workers start."""

    orders: Orders = {}

    def made(loader: Any) -> None:
        with probe.survive("loader.facts"):
            if _SLOT not in loader.__dict__:
                _note(probe, loader, orders)

    cls.check_worker_number_rationality = Before(cls.check_worker_number_rationality, made)


def _keywords(
    probe: Probe, signature: inspect.Signature, loader: Any, args: Any, kwargs: Any
) -> dict[str, Any] | None:
    acting = probe.acting("on_loader")
    if not acting or probe.asleep:
        return None
    given = dict(signature.bind(loader, *args, **kwargs).arguments)
    given.pop("self")
    before = dict(given)
    for activation in acting:
        try:
            given = activation.on_loader(dict(given))
        except Exception:  # an optimization that fails is dropped, the program goes on
            probe.drop(activation, "on_loader")
    return given if given != before else None


def _construct(probe: Probe, original: Any, loader: Any, keywords: dict[str, Any]) -> bool:
    before = dict(loader.__dict__)  # a subclass sets attributes of its own first
    try:
        original(loader, **keywords)
    except Exception:  # keywords of ours that this loader refuses: the program's own are used
        for activation in probe.acting("on_loader"):
            probe.drop(activation, "on_loader")
        loader.__dict__.clear()
        loader.__dict__.update(before)
        return False
    return True


def _note(probe: Probe, loader: Any, orders: Orders) -> None:
    if probe.asleep or len(probe.facts.loaders) > 4 * MAX_SLOT:
        return
    path, line = user_line(4)
    facts = _describe(loader, path, line)
    slot, order = _same(probe, facts), _order_of(loader)
    if slot is None:
        slot, known = orders.get(id(order), (0, _nothing))
        if known() is order:  # a library's, made in place of the program's, as by accelerate's `prepare`
            loader.__dict__[_SLOT] = slot
            return
        probe.facts.loaders.append(facts)
        slot = len(probe.facts.loaders) - 1
    loader.__dict__[_SLOT] = slot
    with contextlib.suppress(TypeError):  # a list of batches
        orders[id(order)] = slot, weakref.ref(order)
    probe.sites.note("loader", "torch.utils.data.DataLoader", slot=slot, made=loader)


def _nothing() -> None:
    """Stands for a weak reference to nothing."""


def _order_of(loader: Any) -> Any:
    """Return what a loader that is made in another one's place takes over from it: the samples' order, in batches."""
    sampler = loader.batch_sampler
    of_all_ranks = getattr(sampler, "batch_sampler", None)
    splits = getattr(sampler, "split_batches", False)
    if of_all_ranks is not None and not splits:  # the batches of a rank are as large
        return of_all_ranks
    return loader if sampler is None else sampler


def _same(probe: Probe, facts: dict[str, Any]) -> int | None:
    """Return the slot of a loader that is made anew in the same place; None: there is none."""
    for slot, known in enumerate(probe.facts.loaders):
        if all(known[key] == facts[key] for key in _SAME):
            known["num_made"] += 1
            return slot
    return None


def _describe(loader: Any, path: str | None, line: int | None) -> dict[str, Any]:
    from torch.utils.data import IterableDataset

    iterable = isinstance(loader.dataset, IterableDataset)
    return {
        "num_workers": loader.num_workers,
        "batch_size": loader.batch_size,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "prefetch_factor": loader.prefetch_factor,
        "dataset": type(loader.dataset).__name__,
        "dataset_len": None if iterable else _length(loader.dataset),
        "sampler": type(loader.sampler).__name__,
        "iterable": iterable,
        "told_epoch": hasattr(loader.dataset, "set_epoch"),
        "num_made": 1,
        "num_iterators": 0,
        "num_batches": 0,
        "path": path,
        "line": line,
    }


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:  # a dataset may raise what it likes
        return None


# Iteration ---------------------------------------------------------------------------------------------------------


def _patch_iter(probe: Probe, cls: Any, iterators: Any) -> None:
    """Time the making of iterators, and tell each which loader it belongs to."""
    sections = _by_slot(probe, Kind.ITERATOR)
    facts = probe.facts
    making = MAX_SLOT

    def marks(loader: Any) -> Section:
        nonlocal making
        slot = loader.__dict__.get(_SLOT, MAX_SLOT)
        making = _slot_of(loader)
        probe.boundary.interrupted()
        if slot < len(facts.loaders):
            facts.loaders[slot]["num_iterators"] += not probe.asleep
        return sections[making]

    def made(iterator: Any) -> None:
        if isinstance(iterator, iterators):  # `inspect.signature` binds methods to the class
            iterator.__dict__.setdefault(_SLOT, making)

    cls.__iter__ = TimedSlot(cls.__iter__, marks)
    iterators.__init__ = Before(iterators.__init__, made)


def _patch_next(probe: Probe, cls: Any) -> None:
    original = cls.__next__
    sections = _by_slot(probe, Kind.DATA)
    acting: list[Activation] = probe.acting("on_batch")
    looked: set[int] = set()
    loaders = probe.facts.loaders

    def marks(iterator: Any) -> Section:
        slot = _slot_of(iterator)
        if slot < len(loaders):
            loaders[slot]["num_batches"] += not probe.asleep
        if slot not in looked and not probe.asleep:
            looked.add(slot)
            with probe.survive("loader.samples"):
                _look_at_samples(probe, iterator, slot)
        return sections[slot]

    if acting:
        cls.__next__ = TimedSlot(_handing_on(probe, original, acting), marks)
        return
    cls.__next__ = timed = TimedSlot(original, marks)
    probe.boundary.pace.swap_while_lean(cls, "__next__", timed, original)


def _look_at_samples(probe: Probe, iterator: Any, slot: int) -> None:
    loaders = probe.facts.loaders
    if slot < len(loaders):
        look_once(iterator, lambda rows: loaders[slot].update(rows=rows))
        draws_once(iterator, lambda names: loaders[slot].update(draws=names))


def _handing_on(probe: Probe, original: Any, acting: list[Activation]) -> Any:
    @functools.wraps(original)
    def fetch(self: Any) -> Any:
        batch = original(self)
        for activation in acting:
            batch = _handed_on(probe, activation, batch)
        return batch

    return fetch


def _patch_shutdown(probe: Probe, cls: Any) -> None:
    """Workers that are not kept end within the last fetch of an epoch, or when the garbage collector comes."""
    sections = _by_slot(probe, Kind.WORKERS_END, aside=True)
    cls._shutdown_workers = TimedSlot(cls._shutdown_workers, lambda iterator: sections[_slot_of(iterator)])


def _slot_of(known: Any) -> int:
    slot: int = known.__dict__.get(_SLOT, MAX_SLOT)
    return min(slot, MAX_SLOT)


def _by_slot(probe: Probe, kind: Kind, *, aside: bool = False) -> list[Section]:
    return [section(probe, kind, slot, aside=aside) for slot in range(MAX_SLOT + 1)]


def _handed_on(probe: Probe, activation: Activation, batch: Any) -> Any:
    if activation not in probe.activations:
        return batch
    try:
        return activation.on_batch(batch)
    except Exception:  # an optimization that fails is dropped, the program goes on
        probe.drop(activation, "on_batch")
        return batch
