"""The baselines of bit-serial products: float32 and int8 of PyTorch, or float32 of NumPy."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Work = Callable[[], object]


class Baselines:
    """Products of one size by another library, with random weights.

    `about` names the library: PyTorch, whose int8 is dynamic quantization (8-bit weights, and
    activations quantized to 8 bits at each product), or else NumPy, which has no int8.
    """

    def __init__(self, size: int, batch: int) -> None:
        draw = np.random.default_rng(0)  # random weights for timing
        self._weights = draw.standard_normal((size, size), np.float32)
        self._x = draw.standard_normal((batch, size), np.float32)
        self._torch: Any = _torch()
        self.about = (
            f"PyTorch {self._torch.__version__}" if self._torch else f"NumPy {np.__version__}"
        )

    @staticmethod
    def set_threads(threads: int) -> None:
        """Sets PyTorch's threads. NumPy's are set by its matrix library."""
        torch = _torch()
        if torch:
            torch.set_num_threads(threads)

    def ways(self) -> dict[object, Work]:
        """Returns the functions to time, by name: fp32, and int8 if available."""
        if not self._torch:
            weights, x = self._weights, self._x
            return {"fp32": lambda: x @ weights.T}
        functional = self._torch.nn.functional
        weights, x = self._torch.from_numpy(self._weights), self._torch.from_numpy(self._x)
        small = self._dynamic(weights)

        def int8() -> object:
            with self._torch.inference_mode():
                return small(x)

        def fp32() -> object:
            with self._torch.inference_mode():
                return functional.linear(x, weights)

        return {"fp32": fp32, "int8": int8}

    def _dynamic(self, weights: Any) -> Callable[[object], object]:  # noqa: ANN401 - a tensor
        """Returns the layer that `torch.ao.quantization.quantize_dynamic` makes."""
        torch = self._torch
        layer = torch.nn.Linear(*weights.shape, bias=False)
        layer.weight = torch.nn.Parameter(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of its move to another package
            whole = torch.ao.quantization.quantize_dynamic(
                torch.nn.Sequential(layer), {torch.nn.Linear}, dtype=torch.qint8
            )
        small: Callable[[object], object] = whole[0]
        return small


def _torch() -> Any:  # noqa: ANN401 - a module
    try:
        import torch  # noqa: PLC0415 - not a dependency
    except ImportError:
        return None
    return torch
