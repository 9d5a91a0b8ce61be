"""The rewrite of dataset_in_memory: a small class that reads a data set once, around what the training loaders get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from hotloop.model.sites import Site, SiteKind, Sites
from hotloop.optimize.rewriting.constructions import keyword_place, remove_keyword, set_keywords
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, module_name
from hotloop.source.keywords import Changes
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Rewrite, Safety
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import parsed

_NUM_WORKERS = {"num_workers": 5}
"""Of DataLoader's parameters by position; the data set is the first."""


@dataclass(frozen=True)
class Wrapper:
    """A class that goes into the user's source.

    Attributes:
        name: of the class.
        text: of the class, with its base's name left open.
        arguments: behind the data set: `, 2`.
        note: what it does, for the patch's account.
        snippet: what to write by hand.
    """

    name: str
    text: str
    arguments: str
    note: str
    snippet: str


_IN_MEMORY = Wrapper(
    "InMemory",
    '''\
class InMemory({dataset}):
    """A data set whose samples are read once and kept: only for one that gives the same sample each time."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.samples = [dataset[i] for i in range(len(dataset))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]

    def __getitems__(self, indices):
        return [self.samples[i] for i in indices]

    def __getattr__(self, name):
        if name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)
''',
    "",
    "its samples are read once and kept",
    "DataLoader([dataset[i] for i in range(len(dataset))], ...)",
)


def rewrite_kept(source: Editor, sites: Sites, *, in_process: bool) -> Rewrite:
    """Keep the samples of the data sets that were seen to feed training steps.

    Args:
        source: the user's files.
        sites: of the observed run.
        in_process: loaders with workers make their batches in the training process.

    Raises:
        CannotEdit: a loader is not made by the user's own code, or is made again and again.
    """
    return wrap_datasets(source, sites, _IN_MEMORY, in_process=in_process)


def wrap_datasets(
    source: Editor, sites: Sites, wrapper: Wrapper, *, in_process: bool = False, safety: Safety = Safety.SAFE
) -> Rewrite:
    """Put a class around the data sets that were seen to feed training steps.

    Raises:
        CannotEdit: a loader is not made by the user's own code, or is made again and again.
    """
    loaders = [site for site in sites.of(SiteKind.LOADER) if site.in_step]
    if not loaders:
        return not_observed("DataLoader that feeds training", wrapper.snippet)
    notes = Changes()
    for site in loaders:
        _refuse_made_again(source, site)
        notes += _wrapped(source, site, wrapper)
        if in_process:
            notes += _without_workers(source, site)
        if _makes_others(site, sites):
            safety = Safety.UNSAFE  # what else it is given was not seen to be deterministic
    if not notes.notes:
        return AlreadySo(f"of the training loaders, {wrapper.note}")
    return Edited(notes.notes, max(safety, notes.safety), options=notes.options)


def _refuse_made_again(source: Editor, site: Site) -> None:
    """A loader that is made anew every epoch would read everything anew every epoch.

    Raises:
        CannotEdit: it is made, or what makes it is called, inside a loop.
    """
    for place in site.places:
        node = source.draft.marks.get(place)
        if node is None:
            continue  # a library's, or a comprehension, which Python 3.11 runs in a frame of its own
        file = source.file(place.path)
        if any(_repeats(above) for above in _within_its_function(file, node)):
            raise CannotEdit(
                f"{place.path}:{file.line(node)} makes a loader in a loop: its data set would be read each time; "
                "make the loader once, before the loop"
            )


def _within_its_function(file: SourceFile, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for above in file.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return
        yield above


def _repeats(node: cst.CSTNode) -> bool:
    """Whether it is a loop over more than a few things written out: `for split in ("train", "test")`."""
    if isinstance(node, cst.For):
        return not isinstance(node.iter, (cst.List, cst.Tuple))
    return isinstance(node, cst.While)


def _makes_others(site: Site, sites: Sites) -> bool:
    """Whether the same expression makes loaders that do not feed training: a function that makes all of them."""
    return any(
        not other.in_step and other.places[:1] == site.places[:1] for other in sites.of(SiteKind.LOADER)
    )


def _wrapped(source: Editor, site: Site, wrapper: Wrapper) -> Changes:
    place, own = keyword_place(source, site)
    given = argument(source.call(place), "dataset", 0 if own else None)
    if given is None:
        raise CannotEdit(f"{place.path}:{source.line(place)}: which argument is the data set cannot be told")
    if isinstance(given.value, cst.Call) and code(given.value.func) == wrapper.name:
        return Changes()
    _define(source, place.path, wrapper)
    given = argument(source.call(place), "dataset", 0 if own else None)
    assert given is not None
    call = cst.ensure_type(cst.parse_expression(f"{wrapper.name}(_{wrapper.arguments})"), cst.Call)
    dataset = call.args[0].with_changes(value=given.value)
    wrapped = call.with_changes(args=[dataset, *call.args[1:]])
    source.change(place.path, given, lambda arg: arg.with_changes(value=wrapped))
    return Changes((f"{place.path}:{source.line(place)}: {wrapper.note}",))


def _define(source: Editor, path: str, wrapper: Wrapper) -> None:
    """Put the class behind the imports, unless it is there.

    Raises:
        CannotEdit: the file means something else by the name.
    """
    file = source.file(path)
    if any(code(each.name) == wrapper.name for each in file.all(cst.ClassDef)):
        return
    if any(name.value == wrapper.name for name in file.all(cst.Name)):
        raise CannotEdit(f"{path} uses the name {wrapper.name} for something else")
    torch = module_name(source, path, "torch")
    line = last_import(source.file(path))
    assert line is not None  # torch's, at least
    new = parsed(source.file(path), wrapper.text.format(dataset=f"{torch}.utils.data.Dataset"))
    source.change(path, source.file(path).module, lambda module: _behind(module, line, new))


def _behind(module: cst.Module, line: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    """Put a class behind a statement, two empty lines around it."""
    at = next(number for number, each in enumerate(module.body) if each is line) + 1
    following = module.body[at : at + 1]
    empty = [cst.EmptyLine(indent=False)] * 2
    apart = [_apart(each) for each in following]
    return module.with_changes(
        body=[*module.body[:at], new.with_changes(leading_lines=empty), *apart, *module.body[at + 1 :]]
    )


def _apart(statement: cst.BaseStatement) -> cst.BaseStatement:
    lines = list(getattr(statement, "leading_lines", ()))
    while lines and lines[0].comment is None:
        lines.pop(0)
    return statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2 + lines)


def _without_workers(source: Editor, site: Site) -> Changes:
    """From memory the training process makes a batch faster than a worker sends it."""
    place, own = keyword_place(source, site)
    if not _names_workers(source.call(place), 5 if own else None):
        return Changes()
    for name in ("prefetch_factor", "persistent_workers"):
        remove_keyword(source, site, name)
    return set_keywords(source, site, {"num_workers": "0"}, _NUM_WORKERS)


def _names_workers(call: cst.Call, position: int | None) -> bool:
    return any(arg.star == "**" for arg in call.args) or argument(call, "num_workers", position) is not None
