"""The rewrite of cached_preprocessing: a class that keeps samples after their first transforms, and runs the others.

Which transforms are random was observed in the process, and is not known to a source: those that are kept are the first
ones of a `Compose` by names that torchvision documents as fixed. Written only where edits that go by names are allowed.
"""

from __future__ import annotations

import libcst as cst

from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.optimize.loaders.wrapped_datasets import COPIED, FORGETS, PASSED_ON, Wrapper, wrap_datasets
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Rewrite

FIXED = frozenset(
    {"CenterCrop", "ConvertImageDtype", "Grayscale", "Normalize", "PILToTensor", "Pad", "Resize", "ToDtype"}
) | {"ToImage", "ToPILImage", "ToTensor"}
_CLASS = (
    '''\
class CachedPreprocessing({torch}.utils.data.Dataset):
    """Keeps samples as they are after their first transforms, which are not random; the others run each time."""

    def __init__(self, dataset, num_kept):
        self.__dict__.update(inner=dataset, num_kept=num_kept, kept={{}})

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        holder, index = self.inner, int(index)
        while not hasattr(holder, "transform"):
            holder = holder.dataset
        chain = holder.transform
        given = chain.transforms
        if index not in self.kept:
            try:
                chain.transforms = given[: self.num_kept]
                self.kept[index] = self.copied(self.inner[index])
            finally:
                chain.transforms = given
        value, *rest = self.copied(self.kept[index])
        for transform in given[self.num_kept :]:
            value = transform(value)
        return (value, *rest)

    def __getitems__(self, indices):
        return [self[i] for i in indices]

'''
    + COPIED
    + PASSED_ON
    + FORGETS
)


def rewrite_prefix(source: Editor, sites: Sites) -> Rewrite:
    """Keep the training samples as they are before their first random transform.

    Raises:
        CannotEdit: not exactly one chain begins with fixed transforms and goes on with others.
    """
    num = _num_kept(source)
    wrapper = Wrapper(
        "CachedPreprocessing",
        _CLASS,
        f", {num}",
        f"the first {num} of its transforms run once",
    )
    snippet = "run the fixed transforms in the data set's __init__, the random ones in __getitem__"
    return wrap_datasets(
        source, sites, lambda _: wrapper, in_process=False, safety=Safety.UNSAFE, snippet=snippet
    )


def _num_kept(source: Editor) -> int:
    """Return how many transforms of the one chain that has random ones come before them."""
    found = [
        num
        for file in source.draft.files.values()
        for call in file.all(cst.Call)
        if _name(call) == "Compose" and (num := _num_fixed(call)) is not None
    ]
    if len(found) != 1:
        raise CannotEdit(
            f"{len(found)} chains (Compose([...])) begin with fixed transforms and go on with random ones, not one"
        )
    return found[0]


def _num_fixed(call: cst.Call) -> int | None:
    """Return how many of a chain's transforms are fixed before the first that is not known to be.

    None: none, or no other is made in the list; one that is only named there (`normalize`) may be anything.
    """
    listed = call.args[0].value if call.args else None
    if not isinstance(listed, cst.List):
        return None
    parts = [part.value for part in listed.elements]
    fixed = [isinstance(part, cst.Call) and _name(part) in FIXED for part in parts]
    has_others = any(
        isinstance(part, cst.Call) and not known for part, known in zip(parts, fixed, strict=True)
    )
    return fixed.index(False) or None if has_others else None


def _name(call: cst.Call) -> str:
    return code(call.func).rpartition(".")[2]
