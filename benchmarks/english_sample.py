"""Draws texts of the code at random, for a reader who judges the English: docstrings, help texts, messages.

python -m benchmarks.english_sample [NUMBER] [SEED]
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hotloop"
FEWEST_WORDS = 5
"""Shorter strings are names and cells of tables."""


def texts() -> Iterator[str]:
    """Yield each text with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value.strip().partition("\n\n")[0]
            else:
                continue
            words = " ".join(text.split())
            if len(words.split()) >= FEWEST_WORDS and " " in words and not words.startswith(("import ", "{")):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}: {words}"


def main() -> None:
    """Print the texts that were drawn."""
    asked = [int(word) for word in sys.argv[1:]]
    number, seed = (*asked, *(60, 46)[len(asked) :])
    found = sorted(set(texts()))
    sys.stdout.write("\n".join(random.Random(seed).sample(found, number)) + "\n")


if __name__ == "__main__":
    main()
