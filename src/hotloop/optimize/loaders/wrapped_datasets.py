"""A class put around what the training loaders get as their data set, in the user's source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from hotloop.model.safety import Safety
from hotloop.model.sites import Site, Sites
from hotloop.optimize.loaders.added_class import define
from hotloop.optimize.loaders.dataset_argument import dataset_argument, makes_others
from hotloop.optimize.loaders.no_workers import POSITION, names_workers, without_workers
from hotloop.optimize.loaders.training_loaders import sites_acted_on
from hotloop.optimize.rewriting.constructions import keyword_place, set_keywords
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.keywords import Changes
from hotloop.source.options import current, option_of
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Rewrite
from hotloop.source.source_file import SourceFile

COPIED = '''\
    def copied(self, value):
        """Return a copy, which a collate function or the training may change."""
        if isinstance(value, {torch}.Tensor):
            return value.clone()
        if type(value) in (list, tuple):
            return type(value)(map(self.copied, value))
        if type(value) is dict:
            return {{key: self.copied(part) for key, part in value.items()}}
        return {copy}.deepcopy(value)

'''
"""A method of a class that keeps samples; deepcopy would copy all of the storage that a tensor is a row of."""
PASSED_ON = """\
    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name, value):
        setattr(self.inner, name, value)
"""
"""The end of a class whose `inner` is the data set: the program asks for its attributes, and sets them, as before."""
FORGETS = """\
        self.kept.clear()
"""
"""Behind it where samples are kept."""


@dataclass(frozen=True)
class Wrapper:
    """A class that goes into the user's source.

    Attributes:
        name: of the class.
        text: of the class (see `define`).
        arguments: behind the data set: `, 2`.
        note: what it does, for the patch's account.
        collated: what it returns of several indices is a batch, which the loader only converts.
        once: making it is dear, so that a loader must not be made again and again.
        others: classes that do the same.
    """

    name: str
    text: str
    arguments: str
    note: str
    collated: bool = False
    once: bool = True
    others: tuple[str, ...] = ()


def wrap_datasets(
    source: Editor,
    sites: Sites,
    choose: Callable[[Site], Wrapper],
    *,
    in_process: bool | None = None,
    safety: Safety = Safety.SAFE,
    snippet: str,
) -> Rewrite:
    """Put a class around the data sets that were seen to feed training steps, and around no others.

    Args:
        source: the user's files.
        sites: of the observed run.
        choose: returns the class for a loader.
        in_process: loaders with workers make their batches in the training process; False: their workers go on, and
            must not each keep what they read; None: there are none, or nothing is kept.
        safety: of the edit.
        snippet: what to write by hand where no loader was observed.

    Raises:
        CannotEdit: the loader is not made by the user's own code, or together with others, or there are several.
    """
    loaders = sites_acted_on(source, sites)
    if not loaders:
        return not_observed("DataLoader that feeds training", snippet)
    notes, already = Changes(), ""
    for site in loaders:
        wrapper = choose(site)
        already = f"of the training loaders, {wrapper.note}"
        if wrapper.once:
            _refuse_made_again(source, site)
        if in_process:
            notes += _in_process(source, site, sites)
        elif in_process is False:
            _refuse_workers(source, site)
        notes += _wrapped(source, site, sites, wrapper)
    if not notes.notes:
        return AlreadySo(already)
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


def _wrapped(source: Editor, site: Site, sites: Sites, wrapper: Wrapper) -> Changes:
    place, given = dataset_argument(source, site, sites)
    if isinstance(given.value, cst.Call) and code(given.value.func) in {wrapper.name, *wrapper.others}:
        return Changes()
    define(source, place.path, wrapper.name, wrapper.text)
    place, given = dataset_argument(source, site, sites)
    call = cst.ensure_type(cst.parse_expression(f"{wrapper.name}(_{wrapper.arguments})"), cst.Call)
    dataset = call.args[0].with_changes(value=given.value)
    wrapped = call.with_changes(args=[dataset, *call.args[1:]])
    source.change(place.path, given, lambda arg: arg.with_changes(value=wrapped))
    if wrapper.collated:
        convert = f"{module_name(source, place.path, 'torch')}.utils.data.default_convert"
        set_keywords(source, site, {"collate_fn": convert}, {"collate_fn": 6})
    return Changes((f"{place.path}:{source.line(place)}: {wrapper.note}",))


def _refuse_workers(source: Editor, site: Site) -> None:
    """Workers would each read and keep samples, and lose them at the end of the epoch.

    Raises:
        CannotEdit: the loader has workers, or may have some.
    """
    place, own = keyword_place(source, site)
    call = source.call(place)
    if not names_workers(call, POSITION if own else None):
        return
    given = argument(call, "num_workers", POSITION if own else None)
    option = option_of(source, place.path, given.value) if given is not None else None
    if given is None or "0" not in {code(given.value), current(option) if option is not None else None}:
        raise CannotEdit(
            f"{place.path}:{source.line(place)} makes a loader with workers, which would each read the data set again; "
            "give it num_workers=0"
        )


def _in_process(source: Editor, site: Site, sites: Sites) -> Changes:
    """From memory the training process makes a batch faster than a worker sends it.

    Raises:
        CannotEdit: the same call makes loaders that keep their workers.
    """
    place, own = keyword_place(source, site)
    if not names_workers(source.call(place), POSITION if own else None):
        return Changes()
    if makes_others(site, sites, site.places.index(place)):
        raise CannotEdit(
            f"{place.path}:{source.line(place)} gives other loaders their workers, too; "
            "set num_workers=0 for the training loader alone"
        )
    return without_workers(source, site)
