"""Small PyTorch modules of the usual kinds, with random weights, for the tests of placements."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")
nn = torch.nn


class ResidualBlock(nn.Module):  # type: ignore[name-defined,misc]
    """Two convolutions and a shortcut; one ReLU is called twice."""

    def __init__(self, num_in: int, num_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_in, num_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(num_out)
        self.conv2 = nn.Conv2d(num_out, num_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(num_out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Conv2d(num_in, num_out, 1, stride) if num_in != num_out else nn.Identity()

    def forward(self, x: Any) -> Any:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        ResidualBlock(8, 8),
        ResidualBlock(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return model.eval(), (torch.randn(2, 3, 12, 12),)


def encoder() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval(), (torch.randn(2, 5, 16),)


def perceptron() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(3)
    layers = [part for width in (12, 24, 48) for part in (nn.Linear(width, 2 * width), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(96, 5)), (torch.randn(4, 12),)


class TiedModel(nn.Module):  # type: ignore[name-defined,misc]
    """An embedding whose matrix is the output layer's too, a weight of the root, keywords, several results."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.position = nn.Parameter(torch.randn(6, 8))
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, 30, bias=False)
        self.head.weight = self.embed.weight
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])

    def forward(self, tokens: Any, *, bias: Any) -> dict[str, Any]:
        x = self.embed(tokens) + self.position * self.scale
        y, (state, _) = self.recurrent(x)
        return {"logits": self.head(y + bias), "rest": (y.sum(), state, tokens)}


def tied() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(4)
    return TiedModel(), (torch.arange(12).reshape(2, 6),)


class TwoTowers(nn.Module):  # type: ignore[name-defined,misc]
    """Two branches that can run side by side, added by the root."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        self.right = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))

    def forward(self, x: Any) -> Any:
        return self.left(x) + self.right(x)


def towers() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(5)
    return TwoTowers(), (torch.randn(3, 16),)


CASES = {"resnet": resnet, "encoder": encoder, "perceptron": perceptron, "tied": tied, "towers": towers}
KWARGS: dict[str, dict[str, Any]] = {"tied": {"bias": torch.ones(8)}}
