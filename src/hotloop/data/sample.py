"""One sample as bytes: what sources yield and shards hold."""

import msgspec


class Sample(msgspec.Struct, frozen=True):
    """A sample of a data set.

    Attributes:
        key: names it in the shard; unique.
        fields: file extension to content: `{"jpg": b"...", "cls": b"3"}`, in order.
    """

    key: str
    fields: dict[str, bytes]
