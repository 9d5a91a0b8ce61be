"""Give the pieces of an irregular stretch of a run their names: set-up, what lies between steps, the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Enum

import msgspec

from hotloop.model.observation import Phase
from hotloop.observe.decode.intervals import Piece
from hotloop.observe.steps.evaluation import evaluation
from hotloop.observe.steps.step_windows import ASIDE, PHASES, WITHIN
from hotloop.probe.record.events import Kind

DIRECT: dict[Kind | None, str] = {**{kind: WITHIN[kind] for kind in ASIDE}, Kind.PAUSE: "held_by_hotloop_s"}
"""What has its name wherever it happens."""
_TRAINS = frozenset({Kind.FORWARD, Kind.BACKWARD, Kind.OPTIMIZER})
_LOADS = frozenset({Kind.DATA, Kind.ITERATOR})


class Stage(Enum):
    """Where in the run a stretch lies."""

    HEAD = "head"
    """Before the first step has ended."""
    BETWEEN = "between"
    """A step that is not like the others."""
    TAIL = "tail"
    """After the last step."""
    CUT = "cut"
    """After the last step of a program that was ended, or interrupted, before it came to its own end."""


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """What the regular steps are like.

    Attributes:
        infers: the steps are forwards without gradients, so none of them is an evaluation.
        num_evaluated: forwards without gradients in a step, which are its own: a teacher's, a frozen trunk's.
        acts: forwards without gradients between steps act in an environment.
        rest_s: what is in no span of a step.
        fetch_s: a fetch of a batch, by loader.
        shares: of each phase in a step.
        step_s: a step.
    """

    infers: bool = False
    num_evaluated: int = 0
    acts: bool = False
    rest_s: float = 0.0
    fetch_s: dict[int, float] = {}
    shares: dict[Phase, float] = {}
    step_s: float = 0.0


def with_own_forwards(pieces: Sequence[Piece], stage: Stage, usual: Usual) -> list[Piece]:
    """Return the pieces of a stretch, the forwards without gradients that the usual step has as plain forwards.

    They are the last ones: what is evaluated between two steps comes before the next one's. No step follows at the end.
    """
    if usual.infers or usual.acts or stage in {Stage.TAIL, Stage.CUT}:
        return list(pieces)
    scores = [index for index, piece in enumerate(pieces) if piece.kind is Kind.EVALUATE]
    own = frozenset(scores[-usual.num_evaluated :]) if usual.num_evaluated else frozenset()
    return [
        piece._replace(kind=Kind.FORWARD) if index in own else piece for index, piece in enumerate(pieces)
    ]


def name_pieces(pieces: Sequence[Piece], stage: Stage, usual: Usual) -> dict[str, float]:
    """Return the time of a stretch by name; it adds up to the stretch's."""
    parts: defaultdict[str, float] = defaultdict(float)
    evaluates = frozenset() if usual.infers else evaluation(pieces)
    first = _loop_begins(pieces, usual) if stage is Stage.HEAD else 0
    rest_s, fresh = 0.0, False
    for index, piece in enumerate(pieces):
        if index in evaluates:
            parts["rollout_s" if usual.acts else "evaluation_s"] += piece.seconds
        elif piece.kind is None and not _is_loss(pieces, index):
            if index < first:
                parts["setup_s"] += piece.seconds
            else:
                rest_s += piece.seconds
        elif piece.kind is Kind.DATA and fresh and stage is not Stage.HEAD:
            usual_s = min(piece.seconds, usual.fetch_s.get(piece.slot, 0.0))
            parts["step_data_s"] += usual_s
            parts["epoch_boundary_s"] += piece.seconds - usual_s
        else:
            parts[_name(piece.kind, stage)] += piece.seconds
        if piece.kind in _LOADS:
            fresh = piece.kind is Kind.ITERATOR
    for name, spent in _rest(rest_s, stage, usual).items():
        parts[name] += spent
    return dict(parts)


def _name(kind: Kind | None, stage: Stage) -> str:
    if kind in DIRECT:
        return DIRECT[kind]
    if stage is Stage.HEAD:
        return "first_batch_s" if kind in _LOADS else "first_step_s"
    if kind is Kind.ITERATOR:
        return "epoch_boundary_s"
    # A gap that is named is a loss; a forward without gradients is named here where the program only infers.
    return f"step_{(PHASES.get(kind, Phase.FORWARD) if kind is not None else Phase.FORWARD).value}_s"


def _rest(rest_s: float, stage: Stage, usual: Usual) -> dict[str, float]:
    if stage is Stage.HEAD:
        return {"first_step_s": rest_s}
    if stage is Stage.TAIL:
        return {"after_training_s": rest_s}
    if stage is Stage.CUT:
        return {"after_last_step_s": rest_s}
    of_step_s = min(rest_s, usual.rest_s)
    return {"step_other_s": of_step_s, "irregular_step_s": rest_s - of_step_s}


def _is_loss(pieces: Sequence[Piece], index: int) -> bool:
    """Whether what is in no span lies between a forward and its backward."""
    if not 0 < index < len(pieces) - 1:
        return False
    return pieces[index - 1].kind is Kind.FORWARD and pieces[index + 1].kind is Kind.BACKWARD


def _loop_begins(pieces: Sequence[Piece], usual: Usual) -> int:
    """Return where the first step begins: at the start of the loader that gives its batch, else at its forward.

    A batch that is looked at earlier, for its shape, belongs to the set-up.
    """
    steps = _TRAINS | ({Kind.EVALUATE} if usual.infers else set())
    first = next((index for index, piece in enumerate(pieces) if piece.kind in steps), len(pieces))
    begins = first
    for index in range(first - 1, -1, -1):
        if pieces[index].kind is Kind.EVALUATE:
            break
        if pieces[index].kind in _LOADS:
            begins = index
        if pieces[index].kind is Kind.ITERATOR:
            break
    return begins
