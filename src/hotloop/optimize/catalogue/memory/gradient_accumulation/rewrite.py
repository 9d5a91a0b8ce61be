"""The source edit of gradient_accumulation."""

from __future__ import annotations

from functools import partial

import libcst as cst

from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.rewriting.forward import forward_place
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import code, method_call
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Refused, Rewrite
from hotloop.source.source_file import below

_BY_HAND = """for part, target in zip(x.chunk({parts}), y.chunk({parts})):
    loss = criterion(model(part), target) * (len(part) / len(x))  # a mean over tokens: by its share of the tokens
    loss.backward()
optimizer.step()
scheduler.step()"""


def rewrite_calls(source: Editor, sites: Sites, num_parts: int) -> Rewrite:
    """Call the model in parts at each training call that gives it one tensor.

    Args:
        source: the user's files.
        sites: of the observed run.
        num_parts: of a batch.

    Raises:
        CannotEdit: a library calls the model.
    """
    by_hand = _BY_HAND.format(parts=num_parts)
    notes: list[str] = []
    forwards = sites.of(SiteKind.FORWARD)
    if not forwards:
        return not_observed("training call of the model", by_hand)
    for site in forwards:
        place = forward_place(source, site)
        call = source.call(place)
        if "checkpoint(" in code(call):
            continue
        plain = len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star
        argument = call.args[0].value if plain else None
        if argument is None or site.returns is None or site.returns.is_tuple or not site.returns.rank:
            return Refused("the model is given, or returns, more than one tensor", by_hand)
        if any(isinstance(each, cst.NamedExpr) for each in [argument, *below(argument)]):
            return Refused(
                "the model is given a name that the call assigns, which no comprehension may", by_hand
            )
        torch = module_name(source, place.path, "torch")
        checkpoint = module_name(source, place.path, "torch.utils.checkpoint")
        parts = code(method_call(argument, "chunk", cst.Arg(cst.Integer(str(num_parts)))))
        text = (
            f"{torch}.cat([{checkpoint}.checkpoint({code(call.func)}, part, use_reentrant=False) "
            f"for part in {parts}])"
        )
        source.change(place.path, source.call(place), partial(_instead, text))
        notes.append(f"{place.path}:{source.line(place)}: the model is called in {num_parts} parts")
    return summed_up(notes, "the model is called in parts already")


def _instead(text: str, _: cst.Call) -> cst.BaseExpression:
    return cst.parse_expression(text)
