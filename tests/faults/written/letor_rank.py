"""Learning to rank documents for a query with a pairwise logistic loss."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class RankingTask:
    queries: int = 400
    documents: int = 28
    tokens: int = 64
    vocabulary: int = 1_000
    grades: int = 5

    def build(self, seed):
        gen = torch.Generator().manual_seed(seed)
        shape = (self.queries, self.documents)
        grade = torch.randint(0, self.grades, shape, generator=gen)
        topic = torch.randint(0, 50, (self.queries, 1, 1), generator=gen)
        word = torch.randint(0, self.vocabulary, shape + (self.tokens,), generator=gen)
        on_topic = torch.rand(word.shape, generator=gen) < 0.12 * grade.unsqueeze(-1)
        return topic.squeeze(), torch.where(on_topic, topic * 20 + word % 20, word), grade


class Ranker(nn.Module):
    def __init__(self, task, dim=96):
        super().__init__()
        self.topic = nn.Embedding(50, dim)
        self.word = nn.Embedding(task.vocabulary, dim)
        self.read = nn.TransformerEncoderLayer(dim, 4, dim_feedforward=2 * dim, dropout=0.0, batch_first=True)
        self.match = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, topic, documents):
        text = self.read(self.word(documents)).mean(dim=1)
        query = self.topic(topic).expand_as(text)
        return self.match(torch.cat([query, text], dim=1)).squeeze(1)


class PairwiseLogistic(nn.Module):
    """Mean logistic loss over pairs where one document is graded above the other."""

    def __init__(self, temperature=1.0):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores, grades):
        grades = grades.tolist()
        terms = []
        for i in range(len(grades)):
            for j in range(len(grades)):
                if grades[i] > grades[j]:
                    margin = (scores[i] - scores[j]) / self.temperature
                    terms.append(F.softplus(-margin))
        return torch.stack(terms).mean() if terms else scores.sum() * 0.0


def ndcg(scores, grades):
    discount = 1 / torch.log2(torch.arange(len(scores)).float() + 2)
    gain = 2.0**grades - 1
    ideal = (gain.sort(descending=True).values * discount).sum()
    return (gain[scores.argsort(descending=True)] * discount).sum() / ideal.clamp(min=1e-6)


def main():
    torch.manual_seed(61)
    task = RankingTask()
    topics, documents, grades = task.build(seed=62)
    ranker, criterion = Ranker(task), PairwiseLogistic(temperature=0.7)
    optimizer = torch.optim.Adam(ranker.parameters(), lr=4e-4)
    for epoch in range(300):
        quality = torch.zeros(())
        for number, q in enumerate(torch.randperm(task.queries).tolist(), start=1):
            scores = ranker(topics[q], documents[q])
            loss = criterion(scores, grades[q])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            quality += ndcg(scores.detach(), grades[q])
            if number % 100 == 0:
                print(f"epoch {epoch} query {number} loss {loss.item():.4f} ndcg {quality.item() / number:.4f}",
                      flush=True)


if __name__ == "__main__":
    main()
