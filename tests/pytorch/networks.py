"""Networks that a private plan is compiled from: those of the thesis, and small ones of each kind.

Widths can be divided, for tests; the counts of tables are those of the full networks.
"""

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
F = nn.functional


def randomized(model, seed=1):
    """Gives batch norms statistics that are not those of a new network; in float64."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.is_floating_point():
                noise = torch.rand(tensor.shape, generator=generator)
                if tensor.ndim > 1:
                    fan = tensor[0].numel()
                    tensor.copy_((noise - 0.5) * (12 / fan) ** 0.5)
                elif "var" in name or "weight" in name:
                    tensor.copy_(noise + 0.5)
                else:
                    tensor.copy_((noise - 0.5) / 2)
    return model.eval()


class LeNet(nn.Module):
    """The thesis's LeNet for 28 x 28: two convolutions with batch norm, and an average pool."""

    def __init__(self, channels=(32, 64), hidden=128):
        super().__init__()
        first, second = channels
        self.conv1, self.bn1 = nn.Conv2d(1, first, 3), nn.BatchNorm2d(first)
        self.conv2, self.bn2 = nn.Conv2d(first, second, 3), nn.BatchNorm2d(second)
        self.pool = nn.AvgPool2d(2)
        self.fc1, self.fc2 = nn.Linear(second * 144, hidden), nn.Linear(hidden, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.pool(F.relu(self.bn2(self.conv2(x))))
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class VGG16(nn.Module):
    """VGG-16 with batch norm for 32 x 32, as torchvision writes it."""

    PLAN = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)

    def __init__(self, divisor=1, places=1, hidden=0):
        super().__init__()
        parts, channels = [], 3
        for width in self.PLAN:
            if width:
                own = width // divisor
                parts += [nn.Conv2d(channels, own, 3, padding=1), nn.BatchNorm2d(own)]
                parts.append(nn.ReLU(inplace=True))
                channels = own
            else:
                parts.append(nn.MaxPool2d(2))
        self.features, self.avgpool = nn.Sequential(*parts), nn.AdaptiveAvgPool2d(places)
        head, channels = [], channels * places**2
        if hidden:
            head = [nn.Linear(channels, hidden), nn.ReLU(True), nn.Dropout()]
        self.classifier = nn.Sequential(*head, nn.Linear(hidden or channels, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class Block(nn.Module):
    """A residual block whose shortcut, where the shape changes, is a convolution."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride > 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x):
        found = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        found += x if self.downsample is None else self.downsample(x)
        return self.relu(found)


class ResNet34(nn.Module):
    """ResNet-34 as torchvision writes it, or with a stem of 3 x 3 for small images."""

    def __init__(self, divisor=1, small=True, classes=100, blocks=(3, 4, 6, 3)):
        super().__init__()
        widths = [width // divisor for width in (64, 128, 256, 512)]
        stem = (3, 1, 1) if small else (7, 2, 3)
        self.conv1 = nn.Conv2d(3, widths[0], *stem, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        groups, channels = [], widths[0]
        for number, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                groups.append(Block(channels, width, 2 if number and not block else 1))
                channels = width
        self.groups, self.avgpool = nn.Sequential(*groups), nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.groups(x)), 1))


class Separable(nn.Module):
    """Depthwise-separable convolutions with hard-swish, as in MobileNetV3 without its gates."""

    def __init__(self, channels=8):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, channels, 3, 2, 1), nn.BatchNorm2d(channels)
        wide = 2 * channels
        self.depthwise = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False)
        self.norm1, self.pointwise = nn.BatchNorm2d(channels), nn.Conv2d(channels, wide, 1)
        self.norm2, self.head = nn.BatchNorm2d(wide), nn.Linear(wide, 5)

    def forward(self, x):
        x = F.hardswish(self.norm(self.stem(x)))
        x = F.hardswish(self.norm1(self.depthwise(x)))
        x = F.hardswish(self.norm2(self.pointwise(x)))
        return self.head(x.mean([2, 3]))


class Waves(nn.Module):
    """A one-dimensional network with GELU."""

    def __init__(self, channels=6):
        super().__init__()
        self.conv1 = nn.Conv1d(2, channels, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 3, padding="same", dilation=2)
        self.pool, self.head = nn.MaxPool1d(2), nn.Linear(channels * 8, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = F.gelu(self.conv2(x))
        return self.head(x.flatten(1))


class Branches(nn.Module):
    """Branches of several kernels beside each other, as in Inception."""

    def __init__(self, channels=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.one = nn.Conv2d(channels, channels, 1)
        self.three = nn.Conv2d(channels, channels, 3, padding=1)
        self.five = nn.Conv2d(channels, channels, 5, padding=2)
        self.last = nn.Conv2d(channels * 4, channels, 3, padding=1)
        self.head = nn.Linear(channels * 16, 4)

    def forward(self, x):
        x = F.silu(self.stem(x))
        around = F.max_pool2d(x, 3, 1, 1)
        x = torch.cat([F.relu(self.one(x)), F.relu(self.three(x)), F.elu(self.five(x)), around], 1)
        x = torch.tanh(self.last(x))
        return self.head(F.avg_pool2d(x, 2).flatten(1))


def mlp():
    """A network of linear layers, batch norm and several functions."""
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(48, 20), nn.BatchNorm1d(20), nn.Sigmoid()),
        *(nn.Linear(20, 20), nn.LeakyReLU(0.1), nn.Dropout(0.3), nn.Linear(20, 4)),
    )
