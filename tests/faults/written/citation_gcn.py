# Semi-supervised node classification on a stochastic block model graph.
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(42)

N_NODES = 6000
N_CLASSES = 6
N_FEATURES = 96
HIDDEN = 96
ITERATIONS = 20_000


def sample_graph(avg_degree=10, p_in=0.8):
    labels = torch.randint(0, N_CLASSES, (N_NODES,))
    order = torch.argsort(labels)
    counts = torch.bincount(labels, minlength=N_CLASSES)
    starts = torch.cumsum(counts, 0) - counts
    n_edges = N_NODES * avg_degree // 2
    src = torch.randint(0, N_NODES, (n_edges,))
    within = (torch.rand(n_edges) * counts[labels[src]]).long()
    same = order[starts[labels[src]] + within]
    other = torch.randint(0, N_NODES, (n_edges,))
    dst = torch.where(torch.rand(n_edges) < p_in, same, other)
    loops = torch.arange(N_NODES)
    row = torch.cat([src, dst, loops])
    col = torch.cat([dst, src, loops])
    return torch.stack([row, col]), labels


def normalised_adjacency(edges):
    degree = torch.bincount(edges[0], minlength=N_NODES).float()
    inv = degree.clamp(min=1).rsqrt()
    values = inv[edges[0]] * inv[edges[1]]
    return torch.sparse_coo_tensor(edges, values, (N_NODES, N_NODES)).coalesce()


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, adj, h):
        return torch.sparse.mm(adj, self.linear(h))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(N_FEATURES, HIDDEN)
        self.conv2 = GraphConv(HIDDEN, HIDDEN)
        self.conv3 = GraphConv(HIDDEN, N_CLASSES)
        self.dropout = nn.Dropout(0.4)

    def forward(self, adj, x):
        h = self.dropout(F.relu(self.conv1(adj, x)))
        h = self.dropout(F.relu(self.conv2(adj, h)))
        return self.conv3(adj, h)


edges, labels = sample_graph()
adj = normalised_adjacency(edges)
features = torch.randn(N_NODES, N_FEATURES) + 0.3 * torch.randn(N_CLASSES, N_FEATURES)[labels]
split = torch.randperm(N_NODES)
train_idx, test_idx = split[:1200], split[1200:]
train_y, test_y = labels[train_idx], labels[test_idx]

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.8, patience=30)

for it in range(ITERATIONS):
    model.train()
    optimizer.zero_grad()
    out = model(adj, features)
    loss = F.cross_entropy(out[train_idx], train_y)
    loss.backward()
    optimizer.step()

    if it % 50 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(adj, features)[test_idx]
            test_loss = F.cross_entropy(logits, test_y).item()
            accuracy = (logits.argmax(1) == test_y).float().mean().item()
        scheduler.step(test_loss)
        print(f"it {it:5d} train {loss.item():.4f} test {test_loss:.4f} acc {accuracy:.3f}", flush=True)
