"""Which loops need their earlier turns."""

from __future__ import annotations

import ast
import textwrap

import pytest

from hotloop.diagnose.lines.carried import needs_earlier_turns


def loop(text: str) -> ast.For:
    found = next(node for node in ast.walk(ast.parse(textwrap.dedent(text))) if isinstance(node, ast.For))
    assert isinstance(found, ast.For)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "for t in range(n):\n    h = cell(x[:, t], h)\n    out.append(h)",
        "for t in range(n):\n    y = x[:, t]\n    for l, cell in enumerate(cells):\n        h[l] = y = cell(y, h[l])",
        "for t in range(1, n):\n    alpha[:, t] = torch.logsumexp(alpha[:, t - 1, :, None] + a, 1)",
        "for t in range(n):\n    self.h = self.cell(x[t], self.h)",
        "for t in range(n):\n    xs.append(f(xs[-1], y[t]))",
        "for t in range(T):\n    out = out + net(encoder(image))",
        "for layer in layers:\n    x = x + layer(x)",
    ],
)
def test_recurrences(text: str) -> None:
    assert needs_earlier_turns(loop(text))


@pytest.mark.parametrize(
    "text",
    [
        "for row in rows:\n    out.append(f(row))",
        "for i in range(n):\n    out[i] = f(x[i])",
        "for i in range(n):\n    x[i] = f(x[i])",
        "for i in range(n):\n    loss = loss + f(x[i])",
        "for i in range(n):\n    total += f(x[i])",
        "for i in range(n):\n    self.total += f(x[i])\n    self.rows.append(x[i])",
        "for n in sizes:\n    out.append(self.score(x[at:at + n]).amax(0))\n    at += n",
        "for n in sizes:\n    end = start + n\n    out.append(f(x[start:end]))\n    start = end",
        "for s in range(n):\n    own = f(x[s])\n    for k in range(m):\n        sims.append(g(own, c[k]))",
    ],
)
def test_turns_that_stand_for_themselves(text: str) -> None:
    assert not needs_earlier_turns(loop(text))
