"""Small files in the formats of MNIST and WikiText-2."""

import gzip

import numpy as np


def write_digits(folder, train, test, *, packed=True):
    """Writes images that show their label as a bright row; returns images and labels."""
    draw = np.random.default_rng(5)
    images, labels = [], []
    for stem, count in (("train", train), ("t10k", test)):
        y = draw.integers(0, 10, count).astype(np.uint8)
        x = draw.integers(0, 80, (count, 28, 28)).astype(np.uint8)
        x[np.arange(count), 2 * y] = 255
        for name, array in ((f"{stem}-images-idx3-ubyte", x), (f"{stem}-labels-idx1-ubyte", y)):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            content = head + array.tobytes()
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
        images.append(x)
        labels.append(y)
    return images, labels


def write_text(folder, **parts):
    """Writes gzipped texts under their stems."""
    for stem, text in parts.items():
        (folder / f"{stem}.txt.gz").write_bytes(gzip.compress(text.encode()))
