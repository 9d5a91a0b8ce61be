"""From a stored session to what a report says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.source import with_source
from hotloop.machine.card.cache import card_of
from hotloop.model.deep import Deep
from hotloop.model.diagnosis import Diagnosis
from hotloop.model.errors import HotloopError
from hotloop.model.finding import Finding
from hotloop.model.machine import MachineCard
from hotloop.model.observation import Coverage, Observation
from hotloop.model.origin import Origin
from hotloop.model.regular_file import regular_bytes
from hotloop.model.safety import Safety
from hotloop.model.secrets import redacted_environment, redacted_words
from hotloop.model.tuning import TuneResult
from hotloop.observe.profile.efficiency import with_quiet_peak
from hotloop.observe.run.origin import ORIGIN
from hotloop.patch.program_files import editable, outdated, sites_now
from hotloop.patch.rewrite_plan import rewrite_plan
from hotloop.report.content.content import Excerpt, ReportContent
from hotloop.report.content.headline import headline, savings
from hotloop.review.manual import manual_page
from hotloop.review.trials import held_steps, looks, loss_curves, samples
from hotloop.store.keys import OBSERVATION, RESULT
from hotloop.store.session import Session

SOURCES = (".py", ".pyw", ".ipynb")
MAX_SOURCE_BYTES = 4 << 20
AROUND = 3
"""Lines of source shown before and after the one that is meant."""
MAX_LINE = 300
"""Columns of such a line."""


class Prices(msgspec.Struct, frozen=True):
    """What time and energy cost the user; None: not said."""

    per_hour: float | None = None
    per_kwh: float | None = None


def report_content(
    session: Session, prices: Prices | None = None, folder: Path | None = None
) -> ReportContent:
    """Return what a report says of a session.

    Args:
        session: open.
        prices: of the machine's time and of energy.
        folder: where the program's source is; the current one unless told.

    Raises:
        HotloopError: there is nothing in it to report.
    """
    tuning = session.get(RESULT, TuneResult)
    before, after = looks(session, tuning) if tuning else (None, None)
    seen = session.get(OBSERVATION, Observation)
    card = card_of(seen) if seen is not None else None
    observation = _observation(seen, before, card)
    if observation is None and tuning is None:
        raise HotloopError(
            f"the session {session.name} holds no measurement",
            "it was ended before anything was measured: run the command again",
        )
    here = folder or Path.cwd()
    prices = prices or Prices()
    found = with_source(diagnose(observation, session.name), here) if observation else None
    patch, why_no_patch = _patch(tuning, here)
    return ReportContent(
        session=session.name,
        headline=headline(observation, tuning, found.bottleneck if found else None),
        savings=savings(observation, tuning, price_per_hour=prices.per_hour, power_price=prices.per_kwh),
        origin=session.get(ORIGIN, Origin),
        observation=observation,
        tuning=tuning,
        bottleneck=found.bottleneck if found else None,
        findings=found.findings if found else (),
        excerpts=tuple(_excerpts(found.findings if found else (), here)),
        manual=_manual(found, tuning),
        sets=tuple(samples(session, tuning)) if tuning else (),
        held=held_steps(session) if tuning else {},
        losses=loss_curves(session, tuning) if tuning else None,
        after=after,
        card=card,
        patch=patch,
        why_no_patch=why_no_patch,
        missing=tuple(_missing(observation, tuning, after, card)),
    )


def _observation(seen: Observation | None, deep: Deep | None, card: MachineCard | None) -> Observation | None:
    """Return the observation; of a tuning session detailed profiling stands in the confirmation."""
    if seen is None:
        return None
    if seen.deep is None and deep is not None:
        seen = msgspec.structs.replace(seen, deep=deep)
    seen = with_quiet_peak(seen, card)  # the machine may have been measured since
    environment = redacted_environment(seen.program.environment)
    return msgspec.structs.replace(
        seen,
        command=redacted_words(seen.command),
        program=msgspec.structs.replace(seen.program, environment=environment),
    )


def _excerpts(findings: Sequence[Finding], folder: Path) -> Iterator[Excerpt]:
    for path, line in dict.fromkeys((one.path, one.line) for one in findings):
        if path is None or line is None:
            continue
        if not path.endswith(SOURCES):  # a session from elsewhere may name any file
            continue
        try:
            lines = regular_bytes(folder / path, MAX_SOURCE_BYTES).decode(errors="replace").splitlines()
        except OSError:
            continue
        first = max(1, line - AROUND)
        if line <= len(lines):
            shown = (one[:MAX_LINE] for one in lines[first - 1 : line + AROUND])
            yield Excerpt(path, line, first, "\n".join(shown))


def _manual(found: Diagnosis | None, tuning: TuneResult | None) -> dict[str, str]:
    names = [one.code for one in found.findings] if found else []
    names += [one.optimization for one in found.findings if one.optimization] if found else []
    names += [step.name for step in tuning.plan.steps] if tuning else []
    pages = {name: manual_page(name) for name in dict.fromkeys(names)}
    return {name: page for name, page in pages.items() if page is not None}


def _patch(tuning: TuneResult | None, folder: Path) -> tuple[str | None, str | None]:
    """Return the plan as a diff of the source as it is now, or why there is none."""
    if tuning is None or not tuning.plan.steps:
        return None, None
    plan = tuning.plan
    if not plan.sites.sources:
        return None, "the session does not say where to edit"
    sites = sites_now(plan, folder)
    stale = outdated(sites, folder)
    if stale:
        return None, f"{', '.join(stale)} changed since (hotloop patch --observe looks again)"
    patch = rewrite_plan(plan.steps, sites, editable(sites, folder, plan.fit.command), Safety.SAFE)
    text = patch.diff.decode(errors="replace")
    return (text, None) if text else (None, "no step of the plan has a safe edit of your source")


def _missing(
    seen: Observation | None, tuning: TuneResult | None, after: Deep | None, card: MachineCard | None
) -> Iterator[Coverage]:
    if seen is None:
        yield Coverage("the step and everything in it", "the session was ended before it was observed")
        return
    yield from seen.coverage
    if seen.deep is None:
        yield Coverage(
            "operators, host samples, memory over a step",
            "no detailed profiling was done: hotloop diagnose does it, and hotloop tune where a plan is proven and "
            "time is left (--budget)"
            if tuning
            else "no detailed profiling was done: hotloop diagnose does it",
        )
    elif tuning is not None and tuning.plan.steps and after is None:
        yield Coverage(
            "operators, host samples, memory over a step with the plan on",
            "the profiled plan ended early or was reduced afterwards",
        )
    if seen.ceilings is None and not any("ceilings" in gap.what for gap in seen.coverage):
        yield Coverage(
            "ceilings",
            "not measured: hotloop diagnose measures them, and a hotloop tune after it shows them"
            if tuning
            else "not asked for: hotloop diagnose measures them",
        )
    if seen.deep is not None and seen.deep.operators is not None and card is None:
        yield Coverage("roofline", "this machine was not measured: run hotloop machine once")
    elif seen.deep is not None and seen.efficiency is not None and seen.efficiency.why_no_peak is not None:
        yield Coverage("roofline", seen.efficiency.why_no_peak)
    if seen.monitors is not None and not any("power" in name for name in seen.monitors.metrics):
        yield Coverage("power", "this machine has no power sensor, so energy and its price are unknown")
    if seen.epoch_steps is None:
        yield Coverage(
            "length of an epoch", "the training loader was started less than twice during the observation"
        )
    for gap in tuning.coverage if tuning else ():
        what, _, why = gap.partition(": ")
        yield Coverage(what, why)
