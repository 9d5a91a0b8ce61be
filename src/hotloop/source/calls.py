"""Read and change the arguments of a call, in the layout that the call already has."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from hotloop.source.outcome import CannotEdit


def argument(call: cst.Call, name: str, position: int | None = None) -> cst.Arg | None:
    """Return the argument given for a parameter; None: it has its default.

    Args:
        call: the call.
        name: of the parameter.
        position: its place among the positional ones; None: it is taken by name alone.

    Raises:
        CannotEdit: it may be hidden in `*args`.
    """
    for at, arg in enumerate(call.args):
        if arg.star:
            break
        if (arg.keyword is None and at == position) or (arg.keyword and arg.keyword.value == name):
            return arg
    named = next((arg for arg in call.args if arg.keyword and arg.keyword.value == name), None)
    if named is None and position is not None and any(arg.star == "*" for arg in call.args):
        stars = next(code(arg.value) for arg in call.args if arg.star)
        raise CannotEdit(f"{name} may be given through *{stars} already")
    return named


def with_argument(call: cst.Call, name: str, value: str, position: int | None = None) -> cst.Call:
    """Return the call with a parameter set: the given argument's value replaced, or a keyword added at the end.

    What `**settings` may hold already is overridden: `**{**settings, "num_workers": 2}` is right in either case.

    Raises:
        CannotEdit: it may be hidden in `*args`.
    """
    given = argument(call, name, position)
    if given is not None:
        changed = given.with_changes(value=cst.parse_expression(value))
    else:
        given = next((arg for arg in call.args if arg.star == "**"), None)
        if given is None:
            return _appended(call, name, cst.parse_expression(value))
        changed = given.with_changes(value=_overridden(given.value, name, value))
    return call.with_changes(args=[changed if arg is given else arg for arg in call.args])


def overrides(call: cst.Call, name: str) -> str | None:
    """Return what a `**{**settings, "name": value}` of the call gives a parameter, as written; None: nothing."""
    for element in (element for arg in call.args if arg.star == "**" for element in _elements(arg.value)):
        if isinstance(element, cst.DictElement) and code(element.key).strip("'\"") == name:
            return code(element.value)
    return None


def _overridden(settings: cst.BaseExpression, name: str, value: str) -> cst.Dict:
    new = cst.DictElement(cst.SimpleString(f'"{name}"'), cst.parse_expression(value))
    if not isinstance(settings, cst.Dict):
        return cst.Dict([cst.StarredDictElement(settings), new])
    kept = [
        element
        for element in settings.elements
        if not (isinstance(element, cst.DictElement) and code(element.key).strip("'\"") == name)
    ]
    return settings.with_changes(elements=[*kept, new])


def _elements(settings: cst.BaseExpression) -> Sequence[cst.BaseDictElement]:
    return settings.elements if isinstance(settings, cst.Dict) else ()


def without_argument(call: cst.Call, name: str) -> cst.Call:
    """Return the call without a keyword."""
    kept = [arg for arg in call.args if not (arg.keyword and arg.keyword.value == name)]
    if len(kept) == len(call.args) or not kept:
        return call.with_changes(args=kept)
    was_last = call.args[-1] not in kept
    if was_last:  # what stood before the closing parenthesis stays before it
        kept[-1] = _as_last(kept[-1], call.args[-1])
    return call.with_changes(args=kept)


def _as_last(arg: cst.Arg, last: cst.Arg) -> cst.Arg:
    """Return an argument that takes the place of the last; the comment behind it stays."""
    before = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else cst.SimpleWhitespace("")
    if isinstance(last.comma, cst.Comma):
        comma = last.comma.with_changes(whitespace_after=_joined(before, last.comma.whitespace_after))
        return arg.with_changes(comma=comma, whitespace_after_arg=last.whitespace_after_arg)
    end = _joined(before, last.whitespace_after_arg)
    return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=end)


def method_call(receiver: cst.BaseExpression, name: str, *arguments: cst.Arg) -> cst.Call:
    """Return the call of a method on an expression, which stays the same node."""
    plain = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    if not isinstance(receiver, plain) and not receiver.lpar:
        receiver = receiver.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(receiver, cst.Name(name)), list(arguments))


def each_of(collect: str, values: cst.BaseExpression, part: str) -> cst.Call:
    """Return `tuple(<part> for part in <values>)`; the expression of the values stays the same node."""
    call = cst.parse_expression(f"{collect}({part} for part in _)")
    assert isinstance(call, cst.Call)
    generator = call.args[0].value
    assert isinstance(generator, cst.GeneratorExp)
    loop = generator.for_in.with_changes(iter=values)
    return call.with_changes(args=[cst.Arg(generator.with_changes(for_in=loop))])


def keyword(name: str, value: str) -> cst.Arg:
    """Return a keyword argument, `name=value`."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=equal)


def code(node: cst.CSTNode) -> str:
    """Return a node as it is written, without the white space around it."""
    return cst.Module([]).code_for_node(node).strip()


def _appended(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    equal = next((arg.equal for arg in call.args if arg.keyword), None) or cst.AssignEqual(
        cst.SimpleWhitespace(""), cst.SimpleWhitespace("")
    )
    new = cst.Arg(value=value, keyword=cst.Name(name), equal=equal)
    if not call.args:
        return call.with_changes(args=[new])
    *before, last = call.args
    separator = _separator(call)
    if isinstance(last.comma, cst.Comma):
        end = last.comma.whitespace_after
        new = new.with_changes(comma=last.comma.with_changes(whitespace_after=_without_comment(end)))
        comma = last.comma.with_changes(whitespace_after=_joined(end, separator))
        return call.with_changes(args=[*before, last.with_changes(comma=comma), new])
    end = last.whitespace_after_arg
    new = new.with_changes(whitespace_after_arg=_without_comment(end))
    comma = cst.Comma(whitespace_after=_joined(end, separator))
    changed = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*before, changed, new])


_White = cst.BaseParenthesizableWhitespace


def _separator(call: cst.Call) -> _White:
    """Return what stands between two arguments of this call: a blank, or a line break and an indent."""
    commas = [arg.comma for arg in call.args[:-1] if isinstance(arg.comma, cst.Comma)]
    if commas:
        return _without_comment(commas[-1].whitespace_after)
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        return _without_comment(call.whitespace_before_args)
    return cst.SimpleWhitespace(" ")


def _without_comment(white: _White) -> _White:
    if not isinstance(white, cst.ParenthesizedWhitespace):
        return white
    line = white.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return white.with_changes(first_line=line, empty_lines=[])


def _joined(end: _White, separator: _White) -> _White:
    """Return the separator with the comment that stood behind the last argument, if one did."""
    if not isinstance(end, cst.ParenthesizedWhitespace) or end.first_line.comment is None:
        return separator
    if not isinstance(separator, cst.ParenthesizedWhitespace):
        return end
    return separator.with_changes(first_line=end.first_line, empty_lines=end.empty_lines)
