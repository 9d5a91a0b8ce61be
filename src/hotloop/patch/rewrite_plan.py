"""Apply the rewrites of a plan's steps to the user's files, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst
import msgspec

from hotloop.integrations.own_knobs import turn_own_knob
from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep, StepEdit
from hotloop.optimize.registry import get
from hotloop.patch.written_lines import WrittenLines
from hotloop.source.diff import unified
from hotloop.source.draft import Editor
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Refused, Rewrite


@dataclass(frozen=True)
class StepOutcome:
    """What became of one step of the plan.

    Attributes:
        step: of the plan.
        outcome: of its rewrite.
        diff: of an edit that is not safe enough to be in the patch: what it would change.
    """

    step: PlanStep
    outcome: Rewrite
    diff: bytes = b""

    @property
    def is_held_back(self) -> bool:
        """Whether there is an edit, and it is not in the patch."""
        return bool(self.diff)

    @property
    def held_back_because(self) -> str:
        """Why it is not, as a clause; empty: it is."""
        if not self.is_held_back or not isinstance(self.outcome, Edited):
            return ""
        if self.outcome.safety is Safety.DISPLAY:
            return "only shown: which of these places is meant is for you to say"
        return "written only with --unsafe"


@dataclass(frozen=True)
class Patch:
    """The files before and after, and what became of each step.

    Attributes:
        before: path to bytes.
        after: the same paths.
        outcomes: in the plan's order.
        sites: where the places are in the files after.
        lines: step to the lines by which its edit is known (see `StepEdit`).
    """

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    outcomes: tuple[StepOutcome, ...]
    sites: Sites
    lines: Mapping[str, dict[str, dict[str, int]]] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that differ."""
        return tuple(path for path in self.before if self.before[path] != self.after[path])

    @property
    def diff(self) -> bytes:
        """What `git apply` takes; empty where nothing is to be changed."""
        return self.diff_named(lambda path: path)

    def diff_named(self, name: Callable[[str], str]) -> bytes:
        """Return the same with other names of the files.

        Args:
            name: of a path, as one sees it who is in another folder.
        """
        return b"".join(unified(name(path), self.before[path], self.after[path]) for path in self.changed)

    def started_as(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command line that the program now needs: an option whose default changed may be given in it."""
        for each in self.outcomes:
            outcome = each.outcome
            if isinstance(outcome, Refused) or each.is_held_back:
                continue
            in_source = isinstance(outcome, AlreadySo) or (bool(outcome.notes) and not outcome.launched)
            for option in outcome.options:
                command = option.in_command(command, only_given=in_source)
            if isinstance(outcome, Edited) and outcome.prefix:
                own = ("python",) * command[0].endswith(".py")  # what hotloop takes for `python train.py`
                command = (*outcome.prefix, *own, *command)
        return command

    def is_launched(self, command: tuple[str, ...]) -> bool:
        """Whether the program has to be started in another way than by this command alone."""
        return bool(self.environment) or self.started_as(command) != command

    @property
    def environment(self) -> dict[str, str]:
        """What the program has to be started with."""
        variables: dict[str, str] = {}
        for each in self.outcomes:
            if isinstance(each.outcome, Edited) and not each.is_held_back:
                variables.update(each.outcome.environment)
        return variables


def rewrite_plan(
    steps: Sequence[PlanStep],
    sites: Sites,
    contents: Mapping[str, bytes],
    allowed: Safety = Safety.SAFE,
    *,
    known: Mapping[str, StepEdit] | None = None,
) -> Patch:
    """Return the patch that a plan comes to.

    Args:
        steps: of the plan.
        sites: of the run that the plan goes by.
        contents: path to the bytes of each file that may be edited.
        allowed: edits that are less safe are shown, and are not in the patch.
        known: name to edit of the steps that an earlier patch wrote; they stay as they are.
    """
    places = list(dict.fromkeys(place for site in sites.sites for place in site.places))
    editor = Editor(contents, places)
    lines = WrittenLines(contents, known or {})
    outcomes = []
    for step in steps:
        before = editor.contents()
        if known and step.name in known:
            outcomes.append(
                StepOutcome(step, AlreadySo("an earlier patch wrote it", known[step.name].options))
            )
        else:
            outcomes.append(_applied(editor, sites, step, allowed))
        lines.follow(step.name, before, editor.contents())
    after = {path: editor.content(path) for path in contents}
    written = {step.name: lines.of(step.name, after) for step in steps}
    return Patch(dict(contents), after, tuple(outcomes), _moved(editor, sites), written)


def _applied(editor: Editor, sites: Sites, step: PlanStep, allowed: Safety) -> StepOutcome:
    """Apply one step's rewrite; what is not to stay is undone."""
    draft = editor.draft
    before = editor.contents()
    try:
        optimization = get(step.name)
        outcome = turn_own_knob(
            editor, sites, step.name, step.params, optimization.environment(step.params)
        ) or optimization.rewrite(editor, sites, step.params)
        if not isinstance(outcome, Refused):
            outcome = _with_notes(outcome, optimization.rewrite_beside(editor, sites))
        _check_syntax(editor)
    except CannotEdit as reason:
        outcome = Refused(str(reason))
    changed = [path for path in before if before[path] != editor.content(path)]
    if isinstance(outcome, Edited) and outcome.safety <= allowed:
        return StepOutcome(step, outcome)
    diff = b"".join(unified(path, before[path], editor.content(path)) for path in changed)
    editor.draft = draft
    return StepOutcome(step, outcome, diff if isinstance(outcome, Edited) else b"")


def _with_notes(outcome: Edited | AlreadySo, notes: Sequence[str]) -> Rewrite:
    """Return an outcome with what was written beside it."""
    if not notes:
        return outcome
    edited = outcome if isinstance(outcome, Edited) else Edited(options=outcome.options)
    return replace(edited, notes=(*edited.notes, *notes))


def _check_syntax(editor: Editor) -> None:
    """A tree can be built that does not read back as Python."""
    for path in editor.draft.files:
        try:
            cst.parse_module(editor.content(path))
        except cst.ParserSyntaxError as error:
            raise CannotEdit(f"{path} would not be Python any more: {error.message}") from error


def _moved(editor: Editor, sites: Sites) -> Sites:
    """Return the sites as they are in the edited files."""
    now = editor.places_now()
    moved = (
        msgspec.structs.replace(site, places=tuple(now.get(place, place) for place in site.places))
        for site in sites.sites
    )
    return msgspec.structs.replace(sites, sites=tuple(moved))
