"""The programs, and what the screen has to name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
GIB = 1 << 30


@dataclass(frozen=True)
class Case:
    """One way to run out of memory.

    Attributes:
        name: of the program.
        way: in words.
        classes: that may hold most; empty: what holds most is no tensor.
        remedy: a word of the first-line help, somewhere among the changes.
        limit_bytes: of the address space, or of the resident size where it is killed.
        killed: by signal 9.
        word: that the screen has to say; empty: none.
    """

    name: str
    way: str
    classes: tuple[str, ...]
    remedy: str
    limit_bytes: int = 3 * GIB
    killed: bool = False
    word: str = ""

    @property
    def path(self) -> Path:
        """The program."""
        return PROGRAMS / f"{self.name}.py"

    def marked(self) -> set[int]:
        """Return the lines that hold, or keep."""
        lines = self.path.read_text().splitlines()
        return {at for at, line in enumerate(lines, 1) if "# holder" in line or "# keeper" in line}


CASES = (
    Case("wrong_batch", "batch of the whole data set", ("activations",), "smaller batch"),
    Case("leak_of_losses", "losses kept with their graph", ("earlier_steps",), "detach"),
    Case("validation_with_gradients", "validation keeps graphs", ("earlier_steps", "activations"), "no_grad"),
    Case("optimizer_state", "Adam's state of an embedding", ("optimizer_state", "parameters", "gradients"), "8-bit"),
    Case("deep_activations", "activations of 64 blocks", ("activations",), "checkpoint"),
    Case("large_vocabulary", "logits over 50,000 words", ("activations",), "slices"),
    Case(
        "host_data", "a cache of arrays in a loader worker", (), "keep fewer entries in self.cache",
        word="A loader worker",
    ),
    Case(
        "killed", "predictions kept until the kernel kills", ("other",), "keep fewer entries in history",
        limit_bytes=2 * GIB, killed=True,
    ),
    Case("long_sequence", "one batch 150 times as long", ("activations",), "micro-batch", word="more than any before"),
    Case("attention_matrix", "attention by its formula", ("activations",), "scaled_dot_product_attention"),
)  # fmt: skip
