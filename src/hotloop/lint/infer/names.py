"""What a name in the source stands for: `F.softmax` is `torch.nn.functional.softmax`."""

import libcst as cst

from hotloop.source.source_file import SourceFile


def dotted(node: cst.CSTNode) -> str | None:
    """`a.b.c` as text; None for anything that is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


class Names:
    """The imports of one file, aliases resolved.

    A local name that the file also assigns is left out: it may be anything.
    """

    def __init__(self, file: SourceFile) -> None:
        self._origin: dict[str, str] = {}
        self._memo: dict[int, str] = {}
        for plain in file.all(cst.Import):
            self._plain(plain)
        for origin in file.all(cst.ImportFrom):
            self._from(origin)
        for target in file.all(cst.AssignTarget):
            if isinstance(target.target, cst.Name):
                self._origin.pop(target.target.value, None)

    def _plain(self, node: cst.Import) -> None:
        for alias in node.names:
            name = dotted(alias.name) or ""
            if alias.asname is not None:
                self._bind(alias.asname.name, name)
            else:
                first = name.split(".")[0]
                self._origin[first] = first

    def _from(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        package = "." * len(node.relative) + (dotted(node.module) or "" if node.module is not None else "")
        for alias in node.names:
            local = alias.asname.name if alias.asname is not None else alias.name
            self._bind(local, f"{package}.{dotted(alias.name)}")

    def _bind(self, local: cst.CSTNode, origin: str) -> None:
        if isinstance(local, cst.Name):
            self._origin[local.value] = _canonical(origin)

    def of(self, node: cst.CSTNode) -> str:
        """The full dotted name of an imported thing; empty where it is not an import."""
        key = id(node)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._resolved(node)
        return found

    def _resolved(self, node: cst.CSTNode) -> str:
        name = dotted(node)
        if name is None:
            return ""
        first, _, rest = name.partition(".")
        origin = self._origin.get(first)
        if origin is None:
            return ""
        return _canonical(f"{origin}.{rest}") if rest else origin

    def call(self, node: cst.CSTNode) -> str:
        """The full name of what a call calls; empty where it is not a call of an import."""
        return self.of(node.func) if isinstance(node, cst.Call) else ""

    @property
    def origins(self) -> frozenset[str]:
        """Every imported thing by its full name."""
        return frozenset(self._origin.values())


# Where a class really lives, and the public name under which the rules know it.
_HOMES = (
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
    ("torch.nn.modules.module.", "torch.nn."),
    ("pytorch_lightning.", "lightning.pytorch."),
    ("lightning.LightningModule", "lightning.pytorch.LightningModule"),
    ("lightning.Trainer", "lightning.pytorch.Trainer"),
)


def _canonical(name: str) -> str:
    for home, public in _HOMES:
        if name.startswith(home):
            return public + name[len(home) :]
    return name
