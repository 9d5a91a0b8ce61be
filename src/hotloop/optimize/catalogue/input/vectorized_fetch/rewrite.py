"""The rewrite of vectorized_fetch: a class that reads whole batches, and a collate function that only converts."""

from __future__ import annotations

from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.loaders.dataset_argument import makes_others
from hotloop.optimize.loaders.wrapped_datasets import PASSED_ON, Wrapper, wrap_datasets
from hotloop.optimize.rewriting.constructions import keyword_place
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Rewrite

_CLASS = (
    '''\
class WholeBatches({torch}.utils.data.Dataset):
    """Reads a batch by one indexing operation: only for a data set that may be indexed with a list of rows."""

    def __init__(self, dataset):
        self.__dict__.update(inner=dataset)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]

    def __getitems__(self, indices):
        return self.inner[indices]

'''
    + PASSED_ON
)
_WRAPPER = Wrapper(
    "WholeBatches",
    _CLASS,
    "",
    "a batch is read at once",
    collated=True,
    once=False,
)
_SNIPPET = (
    "def __getitems__(self, indices): ... and DataLoader(..., collate_fn=torch.utils.data.default_convert)"
)


def rewrite_vectorized(source: Editor, sites: Sites) -> Rewrite:
    """Read the batches of the training loaders at once.

    Raises:
        CannotEdit: a loader is not made by the user's own code, or collates by itself.
    """
    for site in sites.of(SiteKind.LOADER):
        if site.in_step and site.places:
            place, _ = keyword_place(source, site)
            given = argument(source.call(place), "collate_fn", 6)
            if given is not None and not code(given.value).endswith("default_convert"):
                raise CannotEdit(
                    f"{place.path}:{source.line(place)}: the loader has a collate function of its own"
                )
            if makes_others(site, sites, site.places.index(place)):
                raise CannotEdit(
                    f"{place.path}:{source.line(place)} gives other loaders their collate function, too; "
                    "make the training loader by a call of its own"
                )
    return wrap_datasets(source, sites, lambda _: _WRAPPER, snippet=_SNIPPET)
