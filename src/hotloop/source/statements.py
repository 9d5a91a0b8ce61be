"""Put statements before, after and around those of the user."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


def line_of(file: SourceFile, node: cst.CSTNode) -> Line:
    """Return the whole statement that holds an expression.

    Raises:
        CannotEdit: it shares its line with a compound statement's head (`if x: f()`), or stands in a lambda or default.
    """
    for above in (node, *file.ancestors(node)):
        if isinstance(above, (cst.SimpleStatementSuite, cst.Lambda)):
            break
        if isinstance(above, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return above
    raise CannotEdit(f"{file.path}:{file.line(node)}: there is no room for a statement beside it")


def parsed(file: SourceFile, text: str) -> Line:
    """Return one statement of Python as a node in the indent and line ends of a file."""
    module = file.module
    config = cst.PartialParserConfig(
        default_indent=module.default_indent, default_newline=module.default_newline
    )
    statement = cst.parse_statement(text.replace("\n", module.default_newline), config)
    assert isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return statement


def insert_before(editor: Editor, path: str, line: Line, *texts: str) -> None:
    """Put statements before one; its comments stay above all of them."""
    news = [parsed(editor.file(path), text) for text in texts]
    news[0] = news[0].with_changes(leading_lines=line.leading_lines)
    editor.change(path, line, lambda line: [*news, line.with_changes(leading_lines=[])])


def insert_after(editor: Editor, path: str, line: Line, *texts: str, apart: bool = False) -> None:
    """Put statements behind one; with `apart`, an empty line comes first."""
    news = [parsed(editor.file(path), text) for text in texts]
    if apart:
        news[0] = news[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    editor.change(path, line, lambda line: [line, *news])


def siblings(file: SourceFile, line: Line) -> Sequence[cst.BaseStatement]:
    """Return the statements of the block that a statement stands in."""
    block = file.parent(line)
    if isinstance(block, cst.Module):
        return block.body
    assert isinstance(block, cst.IndentedBlock)
    return [each for each in block.body if isinstance(each, cst.BaseStatement)]


def wrap(editor: Editor, path: str, lines: Sequence[cst.BaseStatement], header: str) -> None:
    """Put neighbouring statements of one block into a `with`.

    Args:
        editor: the editor.
        path: of the file.
        lines: the statements, in order.
        header: `with torch.autocast("cpu"):`.
    """
    file = editor.file(path)
    first = lines[0]
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    with_ = parsed(file, f"{header}\n{file.module.default_indent}pass\n")
    block = file.parent(first)
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    leading, inner = first.leading_lines, first.with_changes(leading_lines=[])
    indent = block.indent if isinstance(block, cst.IndentedBlock) else None
    body = cst.IndentedBlock([inner, *lines[1:]], header=with_.body.header, indent=indent)  # type: ignore[union-attr]
    wrapped = with_.with_changes(leading_lines=leading, body=body)

    def put(block: cst.Module | cst.IndentedBlock) -> cst.CSTNode:
        kept = [each for each in block.body if each not in lines[1:]]
        return block.with_changes(body=[wrapped if each is first else each for each in kept])

    editor.change(path, block, put)
