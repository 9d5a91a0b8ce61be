"""Lists of names, written as running text."""


def words(text: str, prefix: str = "") -> frozenset[str]:
    """The words of the text, each with the prefix before it."""
    return frozenset(f"{prefix}{word}" for word in text.split())
