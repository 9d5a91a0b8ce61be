"""The plan as a diff of the program's source."""

from __future__ import annotations

from hotloop.report.content.content import ReportContent
from hotloop.report.document import Code, Note, Section


def patch(content: ReportContent) -> Section | None:
    """Return the section; None: there is no plan to write down."""
    if content.tuning is None or not content.tuning.plan.steps:
        return None
    if content.patch:
        lead = "The plan, written into your source. Apply it with: hotloop patch --write"
        return Section(anchor="patch", title="The patch", lead=lead, blocks=(Code(content.patch, "diff"),))
    why = content.why_no_patch or "it was not computed"
    return Section(
        anchor="patch",
        title="The patch",
        lead="Without changing a line: hotloop run --plan hotloop.toml, in front of your command.",
        blocks=(Note(f"No diff of your source: {why}."),),
    )
