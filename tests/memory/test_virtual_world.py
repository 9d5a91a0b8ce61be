"""What single calls of torch do on a virtual GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from .virtual_world import on_the_device

pytestmark = pytest.mark.slow

BACKWARDS = """
x = torch.randn(1 << 18, device="cuda", requires_grad=True)
for function in (F.relu, F.gelu, F.silu, F.mish):
    out = function(x).sum()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out.backward()
    print((torch.cuda.max_memory_allocated() - before) >> 20)
    x.grad = None
"""


def test_an_activation_has_one_kernel_in_the_backward(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, BACKWARDS) == ["1"] * 4


INFERENCE = """
model = nn.Sequential(nn.Linear(512, 512), nn.SiLU(), nn.LayerNorm(512), nn.Dropout(0.1), nn.Linear(512, 10)).cuda()
attention = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).cuda()
for mode in (torch.no_grad, torch.inference_mode):
    with mode():
        torch.cuda.reset_peak_memory_stats()
        out = model(torch.randn(1024, 512).to("cuda"))
        attention(torch.randn(8, 64, 64).cuda())
        out.tolist(), bool((out > 3).any()), out.sum().item()
        print(out.device, out.softmax(1).cpu().numpy().shape, torch.cuda.max_memory_allocated())
    del out
"""


def test_inference_mode_has_the_memory_of_no_grad_and_gives_values(tmp_path: Path) -> None:
    without, inference = on_the_device(tmp_path, INFERENCE)
    assert without.startswith("cuda:0 (1024, 10)")
    assert inference == without


PACKED = """
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
recurrent = nn.LSTM(8, 16, batch_first=True).cuda()
lengths = torch.tensor([2, 9, 5, 7])
padded = torch.randn(4, 9, 8)
options = {"batch_first": True, "enforce_sorted": False}
for packed in (
    pack_padded_sequence(padded.cuda(), lengths, **options),
    pack_padded_sequence(padded.cuda(), lengths.cuda().cpu(), **options),
    pack_padded_sequence(padded, lengths, **options).to("cuda"),
    pack_sequence([torch.randn(n, 8, device="cuda") for n in (9, 7, 5, 2)]),
):
    out, _ = pad_packed_sequence(recurrent(packed)[0], batch_first=True)
    out.sum().backward()
    print(*packed.data.shape, packed.data.device, packed.batch_sizes.tolist(), *out.shape)
"""


def test_packed_sequences_have_their_lengths(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, PACKED) == ["23 8 cuda:0 [4, 4, 3, 3, 3, 2, 2, 1, 1] 4 9 16"] * 4


UNKNOWN_SIZES = """
numbers = torch.randint(0, 50, (1000,), device="cuda")
rows = torch.randint(0, 9, (100, 3), device="cuda")
print(
    len(numbers.unique()), len(rows.unique(dim=0)), len(numbers.unique_consecutive()), len((numbers > 3).unique()),
    len(numbers.nonzero()), len(numbers.masked_select(numbers > 3)),
)
assert any(each.startswith("_unique2") for each in world.assumptions)
known = torch.tensor([5, 1, 2, 9]).cuda()
print(len(torch.rand(4, 8, device="cuda").repeat_interleave(known, 0)), len(known.bincount()))
assert not any("no bound" in each for each in world.assumptions)
numbers.bincount()
assert any("bincount gives has no bound" in each for each in world.assumptions)
"""


def test_sizes_that_nobody_knows_are_the_largest(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, UNKNOWN_SIZES) == ["1000 100 1000 2 1000 1000", "17 10"]


SPARSE = """
n = 4000
edges, values = torch.arange(8000).view(2, -1) % n, torch.ones(4000)
graph = torch.sparse_coo_tensor(edges, values, (n, n)).coalesce()
weight = nn.Parameter(torch.rand(n, 16, device="cuda"))
for moved in (
    lambda: graph.to("cuda"),
    lambda: graph.to_sparse_csr().cuda(),
    lambda: torch.sparse_coo_tensor(edges.cuda(), values.cuda(), (n, n)).coalesce(),
):
    before = torch.cuda.memory_allocated()
    there = moved()
    size = torch.cuda.memory_allocated() - before
    for product in (torch.spmm, torch.sparse.mm, torch.matmul):
        product(there, weight).sum().backward()
    half = there.to(torch.bfloat16)  # as autocast does
    print(size, *there.shape, *weight.grad.shape, torch.cuda.max_memory_allocated() < 2 << 20)
    del there
embedding = nn.Embedding(1000, 64, sparse=True).cuda()
embedding(torch.tensor([3, 4]).cuda()).sum().backward()
torch.optim.SGD(embedding.parameters(), 0.1).step()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
adam = torch.optim.SparseAdam(list(embedding.parameters()))
adam.step()
states = 2 * 1000 * 64 * 4
print(torch.cuda.memory_allocated() - before == states, torch.cuda.max_memory_allocated() - before < states + 8192)
"""


def test_sparse_tensors_have_their_size_and_are_multiplied(tmp_path: Path) -> None:
    sizes = [4000 * 20, 4000 * 12 + 4001 * 8, 4000 * 20]  # indices of 8 bytes, values of 4
    rounded = [-(-size // 512) * 512 for size in sizes]
    expected = [*(f"{size} 4000 4000 4000 16 True" for size in rounded), "True True"]
    assert on_the_device(tmp_path, SPARSE) == expected


LAZY = """
parts = nn.LazyConv1d(8, 5, padding=2), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(4)
model = nn.Sequential(*parts).to("cuda", torch.bfloat16)
out = model(torch.randn(2, 3, 16, device="cuda", dtype=torch.bfloat16))
out.sum().backward()
torch.optim.SGD(model.parameters(), 0.1).step()
held = [*model.parameters(), *(each for each in model.buffers() if each.is_floating_point())]
print(*parts[3].weight.shape, {each.device.type for each in held}, {each.dtype for each in held})
"""


def test_lazy_modules_are_on_the_device_once_they_have_sizes(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, LAZY) == ["4 128 {'cuda'} {torch.bfloat16}"]


LOADED = """
model = nn.Linear(256, 256).cuda()
torch.save({"weights": model.state_dict(), "before": torch.ones(4)}, "saved.pt")
before = torch.cuda.memory_allocated()
for where in (
    None, "cuda", lambda storage, place: None, lambda storage, place: storage.cuda(),
    "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage,
):
    weight = torch.load("saved.pt", map_location=where)["weights"]["weight"]
    print(weight.device.type, torch.cuda.memory_allocated() - before)
    del weight
"""


def test_a_checkpoint_goes_where_it_is_mapped_to(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, LOADED) == ["cuda 262144"] * 4 + ["cpu 0"] * 4


NUMBERS = """
losses = [torch.rand(3, device="cuda").mean() for _ in range(3)]
seven = torch.tensor(7).cuda()
print(torch.tensor(losses).tolist(), torch.tensor(losses, device="cuda").shape)
print(torch.tensor([seven, 2]).tolist(), torch.as_tensor([seven > 3]).tolist(), torch.FloatTensor([seven]).tolist())
print(int(seven), float(seven), bool(seven > 9), list(range(9))[seven])
try:
    list(range(9))[losses[0]]
except TypeError:
    print("no index")
"""


def test_numbers_on_the_device_are_put_into_new_tensors(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, NUMBERS) == [
        "[1.0, 1.0, 1.0] torch.Size([3])",
        "[7, 2] [True] [7.0]",
        "7 7.0 False 7",
        "no index",
    ]


CHECKED = """
x = torch.rand(3, device="cuda")
indices = torch.randint(0, 5, (10,), device="cuda")
assert (x >= 0).all() and (x <= 1).all()
assert x.min() >= 0 and x.max() <= 1, f"{x.max():.2f}"
assert indices.max() < 5
assert (indices.min() >= 0).item()
if (x < 0).any() or not (x < 1).all().item():
    raise ValueError
F.gaussian_nll_loss(x, x, x)
print((x.max() <= 1).item(), (x < 0).any().item())
"""


def test_checks_of_values_are_passed(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, CHECKED) == [
        "False True"
    ]  # no check: a tolerance is not taken to be reached
