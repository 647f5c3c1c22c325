"""The four networks of the thesis's chapter 4 as PyTorch modules; widths can be divided, for tests.

LeNet is for MNIST, ResNet-32 and VGG-16 are for CIFAR-10, ResNet-34 is for images of CIFAR-100's
size. ResNet-32 has the names of the published checkpoint resnet32-d509ac18.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["NETWORKS", "VGG16", "Architecture", "LeNet", "ResNet32", "ResNet34", "standardize"]

_BATCH = 64
_BRANCH = 0.25


class LeNet(nn.Module):
    """Two convolutions with batch norm, and an average pool, for 28 x 28."""

    def __init__(self, divisor: int = 1) -> None:
        super().__init__()
        first, second, hidden = 32 // divisor, 64 // divisor, 128 // divisor
        self.conv1, self.bn1 = nn.Conv2d(1, first, 3), nn.BatchNorm2d(first)
        self.conv2, self.bn2 = nn.Conv2d(first, second, 3), nn.BatchNorm2d(second)
        self.pool = nn.AvgPool2d(2)
        self.fc1, self.fc2 = nn.Linear(second * 144, hidden), nn.Linear(hidden, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Returns logits (n, 10) of images (n, 1, 28, 28)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.pool(functional.relu(self.bn2(self.conv2(x))))
        found: Tensor = self.fc2(functional.relu(self.fc1(torch.flatten(x, 1))))
        return found


class _Padded(nn.Module):
    """A block whose shortcut takes every second pixel and adds channels of zeros on both sides."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, (outputs - inputs) // 2

    def forward(self, x: Tensor) -> Tensor:
        found = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        added = (0, 0, 0, 0, self.added, self.added)
        return functional.relu(found + functional.pad(shortcut, added))


class ResNet32(nn.Module):
    """ResNet-32 for 32 x 32, with shortcuts of option A (He et al., 2015)."""

    def __init__(self, divisor: int = 1, blocks: int = 5) -> None:
        super().__init__()
        own = [width // divisor for width in (16, 32, 64)]
        self.conv1 = nn.Conv2d(3, own[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(own[0])
        before = own[0]
        for number, width in enumerate(own, 1):
            first = _Padded(before, width, 2 if number > 1 else 1)
            others = (_Padded(width, width, 1) for _ in range(blocks - 1))
            self.add_module(f"layer{number}", nn.Sequential(first, *others))
            before = width
        self.linear = nn.Linear(own[2], 10)

    def forward(self, x: Tensor) -> Tensor:
        """Returns logits (n, 10) of images (n, 3, 32, 32)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        for number in (1, 2, 3):
            x = self.get_submodule(f"layer{number}")(x)
        found: Tensor = self.linear(functional.avg_pool2d(x, 8).flatten(1))
        return found


class VGG16(nn.Module):
    """VGG-16 with batch norm for 32 x 32, as torchvision writes it, with one linear layer."""

    PLAN = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)

    def __init__(self, divisor: int = 1) -> None:
        super().__init__()
        parts, channels = list[nn.Module](), 3
        for width in self.PLAN:
            if width:
                own = width // divisor
                parts += [nn.Conv2d(channels, own, 3, padding=1), nn.BatchNorm2d(own)]
                parts.append(nn.ReLU(inplace=True))
                channels = own
            else:
                parts.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*parts)
        self.fc = nn.Linear(channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Returns logits (n, 10) of images (n, 3, 32, 32)."""
        found: Tensor = self.fc(torch.flatten(self.features(x), 1))
        return found


class _Block(nn.Module):
    """A residual block whose shortcut, where the shape changes, is a convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        found = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(found + self.shortcut(x))


class ResNet34(nn.Module):
    """ResNet-34 with a stem of 3 x 3 and no first pool, for 32 x 32 and 100 classes."""

    def __init__(self, divisor: int = 1, blocks: Sequence[int] = (3, 4, 6, 3)) -> None:
        super().__init__()
        widths = [width // divisor for width in (64, 128, 256, 512)]
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1, groups, channels = nn.BatchNorm2d(widths[0]), list[nn.Module](), widths[0]
        for number, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                groups.append(_Block(channels, width, 2 if number and not block else 1))
                channels = width
        self.groups, self.pool = nn.Sequential(*groups), nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, 100)

    def forward(self, x: Tensor) -> Tensor:
        """Returns logits (n, 100) of images (n, 3, 32, 32)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        found: Tensor = self.fc(torch.flatten(self.pool(self.groups(x)), 1))
        return found


class Architecture(NamedTuple):
    """A network by name: how it is made for a divisor, its inputs, and its last layer."""

    name: str
    make: Callable[[int], nn.Module]
    inputs: tuple[int, int, int]
    last: str


NETWORKS = (
    Architecture("LeNet", LeNet, (1, 28, 28), "fc2"),
    Architecture("ResNet-32", ResNet32, (3, 32, 32), "linear"),
    Architecture("VGG-16", VGG16, (3, 32, 32), "fc"),
    Architecture("ResNet-34", ResNet34, (3, 32, 32), "fc"),
)


def standardize(model: nn.Module, last: str, images: Tensor, seed: int = 1) -> nn.Module:
    """Draws weights, and fits the statistics of batch norms and the last layer to images.

    Convolutions are drawn as in He et al. (2015). Batch norms get the means and variances of the
    images (n, channels, height, width). Each residual block adds a quarter of a deviation: with
    more, every block magnifies rounding errors. Then each output gets the mean 0 and the deviation
    1 over the images: otherwise a random network has the same class for nearly all of them.
    """
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # a mean of all batches
        elif isinstance(module, _Padded | _Block):
            nn.init.constant_(module.bn2.weight, _BRANCH)
    with torch.no_grad():
        batches = images.split(_BATCH)
        model.train()
        for batch in batches:
            model(batch)
        model.eval()
        outputs = torch.cat([model(batch) for batch in batches])
        linear = model.get_submodule(last)
        assert isinstance(linear, nn.Linear)
        deviation = outputs.std(0)
        linear.weight /= deviation[:, None]
        linear.bias.copy_((linear.bias - outputs.mean(0)) / deviation)
    return model
