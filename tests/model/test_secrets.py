"""Secrets of commands and environments are taken out; what only looks like one stays."""

from __future__ import annotations

import pytest

from hotloop.model.secrets import (
    REDACTED,
    free_of_secrets,
    keyed_hash,
    names_secret,
    redacted_environment,
    redacted_words,
)


@pytest.mark.parametrize(
    "name",
    [
        "--hf-token",
        "HF_TOKEN",
        "WANDB_API_KEY",
        "db.password",
        "AWS_SECRET_ACCESS_KEY",
        "hfToken",
        "--auth",
        "--pat",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "--pad-token",
        "--max-tokens",
        "--tokenizer",
        "--password-file",
        "--key",
        "num_key_value_heads",
        "PATH",
        "--lr",
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not names_secret(name)


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        (["--token", "x", "--lr", "1"], ["--token", REDACTED, "--lr", "1"]),
        (["--token=x"], [f"--token={REDACTED}"]),
        (["+logger.api_key=x", "lr=1"], [f"+logger.api_key={REDACTED}", "lr=1"]),
        (["env", "HF_TOKEN=x", "python"], ["env", f"HF_TOKEN={REDACTED}", "python"]),
        (["--use-auth-token", "--lr", "1"], ["--use-auth-token", "--lr", "1"]),
        (["--db", "postgres://me:x@host/runs"], ["--db", f"postgres://me:{REDACTED}@host/runs"]),
        (["hf_" + "x" * 30], [REDACTED]),
        (["-H", "Authorization: Bearer x"], ["-H", f"Authorization: Bearer {REDACTED}"]),
        (["--pad-token", "<pad>", "--max-tokens", "9"], ["--pad-token", "<pad>", "--max-tokens", "9"]),
    ],
)
def test_commands(words: list[str], stored: list[str]) -> None:
    assert list(redacted_words(words)) == stored


def test_environments() -> None:
    assert redacted_environment({"HF_TOKEN": "x", "LANG": "C", "EMPTY_TOKEN": ""}) == {
        "HF_TOKEN": REDACTED,
        "LANG": "C",
        "EMPTY_TOKEN": "",
    }


def test_the_hash_tells_commands_apart_and_needs_the_key() -> None:
    one, other = keyed_hash(["--token", "a"], b"k"), keyed_hash(["--token", "b"], b"k")
    assert one != other
    assert one == keyed_hash(["--token", "a"], b"k") != keyed_hash(["--token", "a"], b"l")


def test_every_string_within_a_value_is_looked_at() -> None:
    key = "hf_" + "x" * 30
    assert free_of_secrets({key: [(f"a {key}", 1.5, None)]}) == {REDACTED: [[f"a {REDACTED}", 1.5, None]]}
