"""A plan's caches begin with the user's, and the user's stay as they are."""

from __future__ import annotations

from pathlib import Path

from hotloop.launch.caches import COMPILERS, TUNERS, seed_caches
from hotloop.launch.environment import own_caches


def test_what_the_user_has_compiled_is_there_and_what_is_compiled_anew_is_not_the_users(
    tmp_path: Path,
) -> None:
    user = tmp_path / "user"
    (user / "ab").mkdir(parents=True)
    (user / "ab" / "kernel.py").write_text("compiled")
    (user / "ab" / "kernel.so").write_bytes(b"\x7fELF")
    caches = tmp_path / "plan" / "caches"
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(user), "HOME": str(tmp_path / "home")}
    seed_caches(environment, caches, COMPILERS)
    there = caches / "inductor" / "ab" / "kernel.py"
    assert there.read_text() == "compiled"
    there.write_text("anew")
    library = there.with_suffix(".so")
    assert library.readlink() == user / "ab" / "kernel.so", "large ones are links"
    replaced = library.with_name("new")
    replaced.write_bytes(b"anew")
    replaced.replace(library)
    assert (user / "ab" / "kernel.so").read_bytes() == b"\x7fELF"
    (there.parent / "other.py").write_text("more")
    assert (user / "ab" / "kernel.py").read_text() == "compiled"
    assert list(user.rglob("*.py")) == [user / "ab" / "kernel.py"]
    seed_caches(environment, caches, COMPILERS)
    assert there.read_text() == "anew", "later arms of the plan find their own"


def test_plans_share_what_was_compiled_and_not_what_a_library_tunes(tmp_path: Path) -> None:
    database = tmp_path / "miopen"
    database.mkdir()
    (database / "found.db").write_text("tuned")
    environment = {"MIOPEN_USER_DB_PATH": str(database), "HOME": str(tmp_path / "home")}
    seed_caches(environment, tmp_path / "compiled", COMPILERS)
    seed_caches(environment, tmp_path / "plan" / "caches", TUNERS)
    assert not (tmp_path / "compiled" / "miopen").exists()
    assert (tmp_path / "plan" / "caches" / "miopen" / "found.db").read_text() == "tuned"
    first, second = (own_caches({}, tmp_path / plan, tmp_path / "compiled") for plan in ("plan", "other"))
    shared = {name for name in first if first[name] == second[name]}
    assert shared == {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}


def test_tables_that_libraries_tune_for_themselves_go_to_the_plan_s_caches(tmp_path: Path) -> None:
    """TunableOp writes a CSV into the current folder, and MIOpen its database into the home."""
    environment = own_caches({"HOME": "/home/user"}, tmp_path)
    for name in (
        "PYTORCH_TUNABLEOP_FILENAME",
        "MIOPEN_USER_DB_PATH",
        "MIOPEN_CUSTOM_CACHE_DIR",
        "TRITON_CACHE_DIR",
    ):
        assert environment[name].startswith(str(tmp_path))
