"""Does an expression compute, and nothing else? Calls that are not known to are named, and judged at run time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

METHODS = frozenset(
    """
    abs acos add addmm all allclose amax amin angle any argmax argmin argsort asin atan atan2 baddbmm bitwise_and
    bitwise_not bitwise_or bmm bool ceil chunk clamp clip clone conj contiguous cos cosh count_nonzero cross cummax
    cummin cumprod cumsum detach det diag diagonal diff dim dist div dot double eq erf exp expand expand_as expm1
    flatten flip float floor fmod frac gather ge gt half index_select int inverse isfinite isinf isnan
    kthvalue le lerp log log10 log1p log2 log_softmax logical_and logical_not logical_or logsumexp long lt masked_fill
    matmul max maximum mean median min minimum mm mode movedim mul mv nan_to_num nansum narrow ne neg norm numel outer
    permute pow prod quantile reciprocal relu remainder repeat reshape roll round rsqrt select sigmoid sign sin sinh
    size softmax softplus sort split sqrt square squeeze std sub sum t take_along_dim tan tanh tile to topk trace
    transpose tril triu true_divide trunc type_as unbind unflatten unfold unsqueeze var view view_as where
    """.split()  # noqa: SIM905 - a list of so many quoted words is not read
)
"""Of tensors: what they compute depends on nothing but their arguments, and they change nothing."""
_BUILTINS = frozenset({"abs", "len", "float", "int"})
_NODES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Call,
    ast.keyword,
    ast.Tuple,
    ast.List,
    ast.IfExp,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.expr_context,
)


class NotIndependent(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason why a loop's turns cannot be made in one call, as a clause."""


class Purity:
    """What is known of a file's calls.

    Args:
        tree: of the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._torch = torch_names(ast.walk(tree))
        self._functions: Mapping[str, ast.FunctionDef] = {
            each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)
        }
        self.called: dict[str, ast.expr] = {}
        """What is called beside torch's own, by its text: it has to be a module of torch's."""

    def require(self, node: ast.AST, depth: int = 0) -> None:
        """Demand that an expression only computes.

        Raises:
            NotIndependent: with what it may do beside.
        """
        for each in ast.walk(node):
            if not isinstance(each, _NODES):
                raise NotIndependent(f"{ast.unparse(node)} is not a plain expression")
            if isinstance(each, ast.Call):
                self._require_call(each, depth)

    def _require_call(self, call: ast.Call, depth: int) -> None:
        if any(isinstance(each, ast.Starred) for each in call.args) or any(
            each.arg in {None, "out", "inplace"} for each in call.keywords
        ):
            raise NotIndependent(f"{ast.unparse(call.func)}() is given what it may change")
        func = call.func
        path = _path(func)
        if path.split(".", maxsplit=1)[0] in self._torch:
            if path.endswith("_") or "rand" in path or "dropout" in path:
                raise NotIndependent(f"{path}() does more than compute")
        elif isinstance(func, ast.Name) and func.id in self._functions:
            self._require_function(self._functions[func.id], depth + 1)
        elif (isinstance(func, ast.Name) and func.id in _BUILTINS) or (
            isinstance(func, ast.Attribute) and func.attr in METHODS
        ):
            return
        elif path and not path.endswith("_"):
            self.called[path] = func
        else:
            raise NotIndependent(f"{ast.unparse(func)}() may do more than compute")

    def _require_function(self, function: ast.FunctionDef, depth: int) -> None:
        """A function of the file's own that only names what it computes, and returns it."""
        body = function.body[1:] if ast.get_docstring(function) else function.body
        if depth > 3 or function.decorator_list or not body or not isinstance(body[-1], ast.Return):
            raise NotIndependent(f"{function.name}() may do more than compute")
        for statement in body:
            value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
            if value is None or (
                isinstance(statement, ast.Assign)
                and not all(_is_names(target) for target in statement.targets)
            ):
                raise NotIndependent(f"{function.name}() may do more than compute (line {statement.lineno})")
            self.require(value, depth)


def _is_names(target: ast.expr) -> bool:
    """Whether nothing but names is given a value: not a place in something that others see."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(each, ast.Name) for each in parts)


def _path(node: ast.AST) -> str:
    """Return a dotted name; empty: it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    owner = _path(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""


def at_module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a file that stand in no function and no class: what they name is known everywhere."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield node
            yield from at_module_level(node)


def torch_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that imports give to torch, its functional modules, or functions of theirs."""
    found: set[str] = set()
    for each in nodes:
        if isinstance(each, ast.Import):
            found |= {
                alias.asname or "torch"
                for alias in each.names
                if alias.name
                in {"torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"}
            }
        elif isinstance(each, ast.ImportFrom) and each.module in {"torch", "torch.nn", "torch.nn.functional"}:
            found |= {
                alias.asname or alias.name
                for alias in each.names
                if each.module != "torch.nn" or alias.name == "functional"
            } - {"nn"}
    return frozenset(found)
