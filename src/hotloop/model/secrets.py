"""Secrets in commands and environments: taken out before anything is stored or shown."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

REDACTED = "REDACTED"
"""Stands where a secret was; a word that a shell passes on as it is."""

_LAST_WORDS = {
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pat",
    "credential",
    "credentials",
}
_LAST_WORDS |= {"apikey", "auth", "authorization", "bearer", "dsn", "cookie"}
_KEYS = {
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "encryption",
    "signing",
    "license",
    "client",
    "master",
}
_NOT_SECRET = {
    "pad",
    "eos",
    "bos",
    "mask",
    "unk",
    "sep",
    "cls",
    "special",
    "start",
    "end",
    "begin",
    "stop",
    "image",
}
_NOT_SECRET |= {
    "audio",
    "video",
    "class",
    "next",
    "new",
    "first",
    "last",
    "prompt",
    "max",
    "min",
    "num",
    "per",
    "by",
}
"""Before `token`: the tokens of language models."""
_ANYWHERE = {"password", "passwd", "passphrase", "secret"}
_PLACES = {"file", "path", "dir", "folder", "name", "id", "env", "var"}
"""After a secret's word: where it is kept, which is no secret."""
_SHAPES = re.compile(
    r"""hf_[A-Za-z0-9]{20,} | sk-[A-Za-z0-9_-]{16,} | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
    | glpat-[\w-]{16,} | xox[abprs]-[\w-]{10,} | AKIA[0-9A-Z]{16} | AIza[\w-]{30,} | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+
    | (?<=Bearer\ )\S+ | (?<=Basic\ )\S+""",
    re.VERBOSE,
)
_LOGIN = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)@")
_ASSIGNED = re.compile(r"(?P<name>[-+]{0,2}[A-Za-z_][\w.\-/@]*)=(?P<value>.*)", re.DOTALL)


def names_secret(name: str) -> bool:
    """Whether an option or a variable of that name holds a secret: `--hf-token`, `WANDB_API_KEY`, `db.password`.

    Words of language models (`--pad-token`, `--max-tokens`, `--tokenizer`) and places (`--password-file`) are none.
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    if not words or words[-1] in _PLACES:
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "key":
        return before in _KEYS
    if words[-1] == "token" and before in _NOT_SECRET:
        return False
    return words[-1] in _LAST_WORDS or not _ANYWHERE.isdisjoint(words)


def without_secrets(text: str) -> str:
    """Return text without what is a secret by its shape: well-known tokens, passwords in addresses."""
    return _LOGIN.sub(rf"\1:{REDACTED}@", _SHAPES.sub(REDACTED, text))


def free_of_secrets(value: Any) -> Any:
    """Return a value as plain lists and dicts of whose strings none holds a secret by its shape."""
    return _free(msgspec.to_builtins(value))


def _free(plain: Any) -> Any:
    if isinstance(plain, str):
        return without_secrets(plain)
    if isinstance(plain, dict):
        return {_free(key): _free(inner) for key, inner in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [_free(inner) for inner in plain]
    return plain


def redacted_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command with `REDACTED` for each value that looks secret: `--token X`, `--token=X`, `a.token=X`."""
    return tuple(_redacted(words))


def _redacted(words: Iterable[str]) -> Iterator[str]:
    value_is_secret = False
    for word in words:
        if value_is_secret and not word.startswith("-"):
            value_is_secret = False
            yield REDACTED
            continue
        assigned = _ASSIGNED.fullmatch(word)
        if assigned is not None and assigned["value"] and names_secret(assigned["name"]):
            yield f"{assigned['name']}={REDACTED}"
            continue
        value_is_secret = word.startswith("-") and assigned is None and names_secret(word)
        yield without_secrets(word)


def redacted_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, with `REDACTED` for every value that looks like a secret."""
    return {
        name: REDACTED if value and names_secret(name) else without_secrets(value)
        for name, value in environment.items()
    }


def keyed_hash(words: Sequence[str], key: bytes) -> str:
    """Return what tells whether two commands are the same, secrets included, without saying what they are.

    Args:
        words: the command as it was typed.
        key: known to this user alone, so that short secrets cannot be found by trying.
    """
    return hmac.new(key, "\0".join(words).encode(errors="surrogateescape"), hashlib.sha256).hexdigest()
