"""The rewrite of device_prefetch: a DataLoader that makes its next batch in a thread."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Sites
from hotloop.optimize.loaders.added_class import define
from hotloop.optimize.loaders.dataset_argument import makes_others
from hotloop.optimize.loaders.training_loaders import sites_acted_on
from hotloop.optimize.rewriting.constructions import keyword_place
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Refused, Rewrite

_NAME = "NextBatchLoader"
_CLASS = '''\
class NextBatchLoader({torch}.utils.data.DataLoader):
    """Makes its next batch in a thread, while this one is trained on."""

    def __iter__(self):
        num_threads = {torch}.get_num_threads()
        with {futures}.ThreadPoolExecutor(
            1, initializer={torch}.set_num_threads, initargs=(1,)
        ) as thread:  # more threads than cores would slow the training
            thread.submit({torch}.get_num_threads).result()
            {torch}.set_num_threads(num_threads)  # it is each thread's own, but others begin with what was set last
            batches = super().__iter__()
            ahead = thread.submit(next, batches, None)
            while (batch := ahead.result()) is not None:
                ahead = thread.submit(next, batches, None)
                yield batch
'''
_ON_A_DEVICE = """\
with torch.cuda.stream(side):  # before the step
    ahead = next_batch.to(device, non_blocking=True)
torch.cuda.current_stream().wait_stream(side)  # after it
ahead.record_stream(torch.cuda.current_stream())
"""


def rewrite_prefetch(source: Editor, sites: Sites) -> Rewrite:
    """Construct the training loaders of the class.

    Raises:
        CannotEdit: there are several, or the loader is of a class of the program's own, or made together with others.
    """
    loaders = sites_acted_on(source, sites)
    if not loaders:
        return not_observed("DataLoader that feeds training", f"{_NAME}(dataset, ...)")
    if sites.device != "cpu":
        return Refused("the line that moves the batches has to change, too; apply it yourself", _ON_A_DEVICE)
    notes: list[str] = []
    for site in loaders:
        place, own = keyword_place(source, site)
        where = f"{place.path}:{source.line(place)}"
        call = source.call(place)
        if code(call.func) == _NAME:
            continue
        if not own:
            raise CannotEdit(f"{where}: the loader is of a class of the program's own")
        if makes_others(site, sites, site.places.index(place)):
            raise CannotEdit(f"{where} makes loaders that do not feed training, too")
        define(source, place.path, _NAME, _CLASS)
        call = source.call(place)
        source.change(place.path, call, lambda call: call.with_changes(func=cst.Name(_NAME)))
        notes.append(f"{where}: the next batch is made in a thread")
    return summed_up(notes, "the training loaders make their next batch in a thread")
