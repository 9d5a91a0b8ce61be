"""The session that a command is tuned in: a new one, or an earlier one to go on with."""

from __future__ import annotations

import hashlib
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from hotloop.machine.host.identity import identity
from hotloop.model.errors import HotloopError
from hotloop.model.machine import EnvironmentCheck
from hotloop.model.secrets import keyed_hash, redacted_words
from hotloop.observe.run.origin import ORIGIN, origin
from hotloop.store.session import Session, find_session, new_session, sessions
from hotloop.store.user_key import user_key
from hotloop.tune.plan.compatibility import moved


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is about; a resumed one has to be about the same."""

    words: tuple[str, ...]
    """Without secrets."""
    words_hash: str | None = None
    """Of the words with their secrets, keyed; None: this user has no key."""
    script_sha256: str | None
    machine: dict[str, Any] = {}
    torch_version: str | None = None

    def same_program(self, other: Head) -> bool:
        """Whether another session is of this command and this script."""
        known = self.words_hash is not None and other.words_hash is not None
        same_secrets = self.words_hash == other.words_hash if known else True
        return same_secrets and (self.words, self.script_sha256) == (other.words, other.script_sha256)

    def elsewhere(self, now: Head) -> list[str]:
        """Return in what machine and torch of then differ from those of now; what is not known differs in nothing."""
        versions = (self.torch_version, now.torch_version)
        changed = None not in versions and versions[0] != versions[1]
        return [*moved(self.machine), *([f"torch: then {versions[0]}, now {versions[1]}"] if changed else [])]


def session_of(
    words: tuple[str, ...], script: Path | None, checks: tuple[EnvironmentCheck, ...] = (), *, resume: bool
) -> Session:
    """Return a new session, or the newest one of this command.

    Args:
        words: the command.
        script: of it, if it has one.
        checks: of the environment, before it.
        resume: go on with what is there.

    Raises:
        HotloopError: there is none to go on with.
    """
    of = origin("tune", words, checks)
    head = Head(
        words=redacted_words(words),
        words_hash=_hash(words),
        script_sha256=_digest(script),
        machine=msgspec.to_builtins(identity()),
        torch_version=of.packages.get("torch"),
    )
    if not resume:
        session = new_session(Path.cwd(), datetime.now().strftime("%Y%m%d-%H%M%S"))
        session.claim()
        session.put("head", head)
        session.put(ORIGIN, of)
        return session
    return _resumed(head)


def _resumed(head: Head) -> Session:
    """The newest session of this command; those of others are passed over."""
    earlier = None
    find_session(Path.cwd()).close()  # says it where there is none at all
    for path in sessions(Path.cwd()):
        session = Session(path)
        known = session.get("head", Head)
        if known is not None and head.same_program(known):
            return _checked(session, known, head)
        session.close()
        if earlier is None and known is not None and known.words == head.words:
            earlier = session.name
    raise HotloopError(
        f"the script, or a secret in the command, has changed since session {earlier}, so it cannot be gone on with"
        if earlier
        else f"no session here is one of tuning {shlex.join(head.words)}, so none can be gone on with",
        "start a new one: run the command without --resume; hotloop sessions lists what is there",
    )


def _checked(session: Session, known: Head, now: Head) -> Session:
    """Times of another machine or torch say nothing here.

    Raises:
        HotloopError: with what differs.
    """
    differing = known.elsewhere(now)
    if not differing:
        try:
            session.claim()
        except HotloopError:
            session.close()
            raise
        return session
    session.close()
    raise HotloopError(
        f"session {session.name} was not measured here: {'; '.join(differing)}",
        "start a new one: run the command without --resume",
    )


def _hash(words: tuple[str, ...]) -> str | None:
    key = user_key()
    return keyed_hash(words, key) if key is not None else None


def _digest(script: Path | None) -> str | None:
    return (
        hashlib.sha256(script.read_bytes()).hexdigest() if script is not None and script.is_file() else None
    )
