"""The rewrite of dataset_in_memory: a small class that reads a data set once, around what the training loaders get."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.optimize.loaders.wrapped_datasets import COPIED, FORGETS, PASSED_ON, Wrapper, wrap_datasets
from hotloop.optimize.rewriting.constructions import keyword_place
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.outcome import Rewrite

_NOTE = "its samples are read once and kept"
_SAMPLES = Wrapper(
    "InMemory",
    '''\
class InMemory({torch}.utils.data.Dataset):
    """A data set whose samples are read once and kept: only for one that gives the same sample each time."""

    def __init__(self, dataset):
        self.__dict__.update(inner=dataset, kept={{}})

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        index = int(index)
        if index not in self.kept:
            self.kept[index] = self.copied(self.inner[index])
        return self.copied(self.kept[index])

    def __getitems__(self, indices):
        return [self[i] for i in indices]

'''
    + COPIED
    + PASSED_ON
    + FORGETS,
    "",
    _NOTE,
    others=("InMemoryTable",),
)
_TABLE = Wrapper(
    "InMemoryTable",
    '''\
class InMemoryTable({torch}.utils.data.Dataset):
    """A data set whose samples are read once and kept: only for one that gives the same sample each time.

    Each part of a sample is a row of one tensor, so that a batch is one indexing operation for each.
    """

    def __init__(self, dataset):
        self.__dict__.update(inner=dataset, kept=[])

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]

    def __getitems__(self, indices):
        if not self.kept:
            parts = [
                {torch}.utils.data.default_collate([self.inner[i] for i in range(at, min(at + 256, len(self)))])
                for at in range(0, len(self), 256)
            ]
            self.kept.extend({torch}.cat(rows) for rows in zip(*parts))
        indices = {torch}.as_tensor(indices)
        return [rows.index_select(0, indices) for rows in self.kept]

'''
    + PASSED_ON
    + FORGETS,
    "",
    _NOTE,
    collated=True,
    others=("InMemory",),
)


def rewrite_kept(source: Editor, sites: Sites, *, in_process: bool | None) -> Rewrite:
    """Keep the samples of the data sets that were seen to feed training steps.

    Args:
        source: the user's files.
        sites: of the observed run.
        in_process: loaders with workers make their batches in the training process; None: there are none.

    Raises:
        CannotEdit: a loader is not made by the user's own code, or is made again and again.
    """
    return wrap_datasets(
        source,
        sites,
        lambda site: _TABLE if _is_table(source, site, sites) else _SAMPLES,
        in_process=in_process,
        snippet="DataLoader([dataset[i] for i in range(len(dataset))], ...)",
    )


def _is_table(source: Editor, site: Site, sites: Sites) -> bool:
    """Whether a loader's samples are rows of a table, and its own call makes no other loader.

    Raises:
        CannotEdit: it is not made by the user's own code.
    """
    place, own = keyword_place(source, site)
    call = source.call(place)
    same = [other for other in sites.of(SiteKind.LOADER) if place in other.places]
    return (
        own
        and all(other.in_step and other.rows for other in same)
        and argument(call, "collate_fn", 6) is None
        and _is_asked_for_once(source, place)
    )


def _is_asked_for_once(source: Editor, place: Place) -> bool:
    """Whether a call stands at the top of its file, or in a function that the program calls in one place at most."""
    function = source.file(place.path).enclosing(source.call(place), cst.FunctionDef)
    if function is None:
        return True
    called = [
        call
        for file in source.draft.files.values()
        for call in file.all(cst.Call)
        if code(call.func).rpartition(".")[2] == function.name.value
    ]
    return len(called) <= 1
