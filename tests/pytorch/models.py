"""Plain models that the tests export."""

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


class Recommender(nn.Module):
    """The mean of a history, a user's row and a target, in a small network."""

    def __init__(self, items=200, users=30, columns=12, device=None):
        super().__init__()
        self.items = nn.EmbeddingBag(items, columns, mode="mean", padding_idx=0, device=device)
        self.users = nn.Embedding(users, columns, device=device)
        self.targets = nn.Embedding(items, 5, device=device)
        self.norm = nn.BatchNorm1d(2 * columns + 5)
        self.head = nn.Sequential(nn.Linear(2 * columns + 5, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("offset", torch.tensor(0.5))

    def forward(self, history, users, targets):
        x = torch.cat([self.items(history), self.users(users), self.targets(targets)], dim=1)
        return self.head(self.norm(x)) + self.offset


class Language(nn.Module):
    """A next-word model, whose output layer may share the embedding's weight."""

    def __init__(self, words=50, columns=12, tied=False):
        super().__init__()
        self.embedding = nn.Embedding(words, columns, padding_idx=0)
        self.rnn = nn.LSTM(columns, columns, batch_first=True)
        self.output = nn.Linear(columns, words)
        if tied:
            self.output.weight = self.embedding.weight

    def forward(self, tokens):
        return self.output(self.rnn(self.embedding(tokens))[0])


def recommender(**options):
    """A model with weights and statistics that are not those of a new one, and inputs."""
    torch.manual_seed(5)
    model = Recommender(**options)
    with torch.no_grad():
        for tensor in (*model.parameters(), model.norm.running_mean, model.offset):
            tensor.add_(torch.randn(tensor.shape) / 4)
    generator = torch.Generator().manual_seed(9)
    sizes = [(200, (6, 9)), (30, (6,)), (200, (6,))]
    x = [torch.randint(below, shape, generator=generator) for below, shape in sizes]
    return model.eval(), x


def language(**options):
    torch.manual_seed(6)
    model = Language(**options).eval()
    return model, [torch.randint(50, (3, 7), generator=torch.Generator().manual_seed(2))]
