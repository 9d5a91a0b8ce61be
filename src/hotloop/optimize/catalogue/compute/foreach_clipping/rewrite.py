"""`foreach=True` where the program clips its gradients."""

from __future__ import annotations

from functools import partial

from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.rewriting.outcomes import changed, not_observed
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.keywords import Changes, set_keyword
from hotloop.source.outcome import Refused, Rewrite

POSITIONS = {"clip_grad_norm_": 4, "clip_grad_value_": 2}
SNIPPET = "torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)"


def clip_together(source: Editor, sites: Sites) -> Rewrite:
    """Change the user's calls of torch's functions; a library's are refused."""
    clips = sites.of(SiteKind.CLIP)
    if not clips:
        return not_observed("clipping of gradients by torch", SNIPPET)
    changes = Changes()
    own = 0
    for place in dict.fromkeys(site.places[0] for site in clips if site.places):
        if place.path not in source.draft.files:
            continue
        name = meaning(source.file(place.path), source.call(place).func).rpartition(".")[2]
        if name in POSITIONS:
            own += 1
            call = partial(source.call, place)
            changes += set_keyword(source, place.path, call, "foreach", "True", POSITIONS[name])
    if not own:
        return Refused("what clips is not called by the program itself", SNIPPET)
    return changed(changes, "gradients are clipped with foreach=True")
