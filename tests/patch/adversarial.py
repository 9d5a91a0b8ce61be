"""Sources that editing by guess would break, each with what must become of it under a plan of many steps."""

from __future__ import annotations

HEAD = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
"""
LOOP = """
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
MADE = """loader = DataLoader(data, batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
PLAIN = HEAD + MADE + LOOP
REST = MADE.split("\n", 1)[1] + LOOP
"""Everything but the loader."""

SOURCES: dict[str, str | bytes] = {
    "plain": PLAIN,
    "crlf": PLAIN.replace("\n", "\r\n"),
    "tabs": PLAIN.replace("    ", "\t"),
    "latin_1": ("# -*- coding: latin-1 -*-\n# größer, schöner\n" + PLAIN).encode("latin-1"),
    "byte_order_mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "wide_characters": PLAIN.replace("loader = Data", "größe = 4; 名 = '🙂'; loader = Data").replace(
        "=4)", "=größe)"
    ),
    "no_newline_at_the_end": PLAIN.rstrip("\n"),
    "form_feed": PLAIN.replace("\nfor", "\n\x0c\nfor"),
    "semicolons": HEAD + "loader = DataLoader(data, 4); model = nn.Linear(4, 1); optimizer = "
    "torch.optim.SGD(model.parameters(), lr=0.1)\n" + LOOP,
    "everything_on_one_line": HEAD
    + MADE
    + "for x, y in loader: model(x).sum().backward(); optimizer.step()\n",
    "decorated": HEAD
    + """
def twice(function):
    def run(*args, **kwargs):
        function(*args, **kwargs)
        return function(*args, **kwargs)
    return run


@twice
def make(size):
    return DataLoader(data, batch_size=size)


loader = make(4)
"""
    + REST,
    "nested_functions": HEAD
    + """
def outer():
    def inner():
        def innermost():
            return DataLoader(data, batch_size=4)
        return innermost()
    return inner()


loader = outer()
"""
    + REST,
    "star_arguments": HEAD + "args = (data, 4)\nloader = DataLoader(*args)\n" + REST,
    "star_star_arguments": HEAD + "cfg = dict(batch_size=4)\nloader = DataLoader(data, **cfg)\n" + REST,
    "keywords_in_braces": HEAD + "loader = DataLoader(data, **{'batch_size': 4, 'num_workers': 0})\n" + REST,
    "partial": HEAD
    + "import functools\nMake = functools.partial(DataLoader, batch_size=4)\nloader = Make(data)\n"
    + REST,
    "conditional_expression": HEAD
    + "big = False\nloader = DataLoader(data, batch_size=8) if big else DataLoader(data, batch_size=4)\n"
    + REST,
    "three_loaders_on_one_line": HEAD
    + "loader, other, third = DataLoader(data, 4), DataLoader(data, 2), DataLoader(data, 1)\n"
    + REST,
    "loader_in_the_head_of_the_loop": HEAD + REST.replace("in loader", "in DataLoader(data, batch_size=4)"),
    "renamed_class": HEAD.replace("DataLoader, Ten", "DataLoader as Batches, Ten")
    + MADE.replace("DataLoader", "Batches")
    + LOOP,
    "class_in_a_list": HEAD + "kinds = [DataLoader]\nloader = kinds[0](data, 4)\n" + REST,
    "walrus": HEAD + "print(len(loader := DataLoader(data, batch_size=4)))\n" + REST,
    "comprehension": HEAD + "loader = [DataLoader(data, batch_size=n) for n in (4, 2)][0]\n" + REST,
    "lambda": HEAD + "loader = (lambda n: DataLoader(data, batch_size=n))(4)\n" + REST,
    "backslashes": HEAD + "loader = \\\n    DataLoader(data, \\\n               batch_size=4)\n" + REST,
    "comments_everywhere": HEAD
    + "loader = DataLoader(  # the data\n    data,\n    # so many\n    batch_size=4  # at once\n    # that is all\n)\n"
    + REST,
    "exported_notebook": "#!/usr/bin/env python\n# coding: utf-8\n\n# # Training\n\n# In[1]:\n\n\n"
    + HEAD
    + "\n\n# In[2]:\n\n\n"
    + MADE
    + "\n\n# In[ ]:\n\n"
    + LOOP,
    "code_in_a_string": HEAD + 'exec("""' + MADE + '""")\n' + LOOP,
    "a_name_that_is_ours": HEAD.replace("import torch\n", "import torch\nautocast = compile = None\n")
    + MADE
    + LOOP,
    "star_import": "from torch import *\nfrom torch import nn, optim\nfrom torch.utils.data import *\n"
    "data = TensorDataset(randn(8, 4), randn(8, 1))\n" + MADE.replace("torch.optim", "optim") + LOOP,
    "torch_under_another_name": PLAIN.replace("import torch\n", "import torch as t\n")
    .replace("torch.randn", "t.randn")
    .replace("torch.optim", "t.optim"),
    "loop_in_try": HEAD
    + MADE
    + "try:\n"
    + "\n".join("    " + line if line else line for line in LOOP.splitlines())
    + "\nfinally:\n    pass\n",
    "match_statement": HEAD
    + MADE
    + """
match len(data):
    case 8:
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
""",
    "generator": HEAD
    + MADE
    + """
def losses():
    for x, y in loader:
        yield nn.functional.mse_loss(model(x), y)


for loss in losses():
    loss.backward()
    optimizer.step()
""",
    "method_chain": HEAD
    + MADE
    + LOOP.replace("loss.backward()", "(loss\n        .mean()\n        .backward())"),
}
