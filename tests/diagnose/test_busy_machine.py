"""What a neighbour makes by itself is no fault of the program's."""

from __future__ import annotations

import msgspec

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .observations import observed, with_loader, with_phases, with_program


def _findings(observation: Observation) -> list[Finding]:
    return list(diagnose(observation).findings)


def test_on_a_busy_machine_the_neighbour_comes_first() -> None:
    busy = msgspec.structs.replace(with_loader(with_phases(data=0.5), num_workers=0), foreign_share=0.84)
    codes = [one.code for one in _findings(busy)]
    assert codes[:2] == ["busy-machine", "loader-in-training-process"]
    calm = msgspec.structs.replace(busy, foreign_share=0.12)
    assert _findings(calm)[0].code == "loader-in-training-process"


def test_what_a_neighbour_makes_is_information_while_it_is_busy() -> None:
    waits = with_phases(communication=0.4)
    waits = msgspec.structs.replace(waits, ranks=waits.ranks * 2)
    seen = {
        share: next(
            one.severity
            for one in _findings(msgspec.structs.replace(waits, foreign_share=share))
            if one.code == "communication-bound"
        )
        for share in (0.0, 0.5)
    }
    assert seen == {0.0: Severity.WARNING, 0.5: Severity.INFO}


def test_cores_in_others_hands_are_not_free() -> None:
    one_thread = with_program(observed(foreign_share=0.84), num_threads=1)
    finding = next(one for one in _findings(one_thread) if one.code == "undersubscribed-threads")
    assert "free" not in finding.evidence
    assert "others used 84%" in finding.evidence
