"""The account of the peak as rules ask for it, and how much of it a change would save."""

from __future__ import annotations

from hotloop.diagnose.abstain import Abstain
from hotloop.model.memory_account import PeakAccount
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size


def peak_account(observation: Observation) -> PeakAccount:
    """Return what holds the peak of a training step.

    Raises:
        Abstain: it was not looked at.
    """
    account = observation.memory.account
    if account is None:
        raise Abstain("the account of the peak of memory (a run without --no-deep)")
    return account


def most(account: PeakAccount) -> str:
    """Return the class that holds most of the peak."""
    return max(account.held.by_class, key=lambda name: account.held.by_class[name], default="")


def saves(num_bytes: int, account: PeakAccount, basis: str) -> str:
    """Say how much less the peak would be at most, and what that is of."""
    share = num_bytes / account.peak_bytes if account.peak_bytes else 0.0
    return f"saves at most {byte_size(num_bytes)} of the peak's {byte_size(account.peak_bytes)} ({share:.0%}): {basis}"
