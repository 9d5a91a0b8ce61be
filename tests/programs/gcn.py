"""A graph convolution network: the whole graph is one batch, there is no loader, the adjacency matrix is sparse.

One step is one epoch; every epoch ends with an evaluation on other nodes. Early stopping looks at the validation loss.
"""

import argparse
from time import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adam


class GraphConv(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(input_dim, output_dim))
        nn.init.xavier_normal_(self.kernel)
        self.bias = nn.Parameter(torch.zeros(output_dim))

    def forward(self, input_tensor, adj_mat):
        return torch.sparse.mm(adj_mat, torch.mm(input_tensor, self.kernel)) + self.bias


class GCN(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, dropout_p):
        super().__init__()
        self.gc1 = GraphConv(input_dim, hidden_dim)
        self.gc2 = GraphConv(hidden_dim, output_dim)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input_tensor, adj_mat):
        x = self.dropout(F.relu(self.gc1(input_tensor, adj_mat)))
        return F.log_softmax(self.gc2(x, adj_mat), dim=1)


def load_communities(num_nodes=3000, num_classes=6, dim=256):
    labels = torch.randint(0, num_classes, (num_nodes,))
    source = torch.randint(0, num_nodes, (num_nodes * 12,))
    target = torch.randint(0, num_nodes, (num_nodes * 12,))
    keep = (labels[source] == labels[target]) | (torch.rand(len(source)) < 0.15)
    source, target = source[keep], target[keep]
    loops = torch.arange(num_nodes)
    index = torch.stack([torch.cat([source, target, loops]), torch.cat([target, source, loops])])
    adj = torch.sparse_coo_tensor(index, torch.ones(index.shape[1]), (num_nodes, num_nodes)).coalesce()
    degree = torch.sparse.sum(adj, 1).to_dense().rsqrt()
    row, col = adj.indices()
    adj = torch.sparse_coo_tensor(adj.indices(), adj.values() * degree[row] * degree[col], adj.shape).coalesce()
    features = torch.randn(num_nodes, dim) + 0.4 * torch.randn(num_classes, dim)[labels]
    return features, labels, adj


def train_iter(epoch, model, optimizer, criterion, input, target, mask_train, mask_val, print_every):
    start_t = time()
    model.train()
    optimizer.zero_grad()
    output = model(*input)
    loss = criterion(output[mask_train], target[mask_train])
    loss.backward()
    optimizer.step()
    loss_val, acc_val = test(model, criterion, input, target, mask_val)
    if epoch % print_every == 0:
        print(f"Epoch: {epoch:04d} ({(time() - start_t):.4f}s) loss_train: {loss:.4f} loss_val: {loss_val:.4f} acc_val: {acc_val:.4f}", flush=True)
    return loss_val


def test(model, criterion, input, target, mask):
    model.eval()
    with torch.no_grad():
        output, target = model(*input)[mask], target[mask]
        return criterion(output, target).item(), (output.argmax(1) == target).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Graph convolution on made-up communities")
    parser.add_argument("--epochs", "--steps", type=int, default=200)
    parser.add_argument("--patience", type=int, default=1000)
    parser.add_argument("--hidden-dim", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(42)
    features, labels, adj_mat = load_communities()
    idx = torch.randperm(len(labels))
    idx_train, idx_val, idx_test = idx[:600], idx[600:1200], idx[1200:]
    gcn = GCN(features.shape[1], args.hidden_dim, int(labels.max()) + 1, 0.5)
    optimizer = Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
    criterion = nn.NLLLoss()
    best, waited = float("inf"), 0
    for epoch in range(args.epochs):
        loss_val = train_iter(epoch + 1, gcn, optimizer, criterion, (features, adj_mat), labels, idx_train, idx_val, 20)
        best, waited = (loss_val, 0) if loss_val < best else (best, waited + 1)
        if waited > args.patience:
            break
    print("test loss %.4f accuracy %.4f" % test(gcn, criterion, (features, adj_mat), labels, idx_test))
