"""What bit-serial products are compared with: float32 and int8 by PyTorch, or float32 by NumPy."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Work = Callable[[], object]


class Baselines:
    """Products of one size by others, to be timed; weights are random.

    `about` names who makes them: PyTorch, whose int8 is dynamic quantisation (weights and
    activations of 8 bits, activations quantised at each product), or, without it, NumPy, which has
    no int8.
    """

    def __init__(self, size: int, batch: int) -> None:
        draw = np.random.default_rng(0)  # for weights that mean nothing
        self._weights = draw.standard_normal((size, size), np.float32)
        self._x = draw.standard_normal((batch, size), np.float32)
        self._torch: Any = _torch()
        self.about = (
            f"PyTorch {self._torch.__version__}" if self._torch else f"NumPy {np.__version__}"
        )

    @staticmethod
    def set_threads(threads: int) -> None:
        """Sets PyTorch's threads; NumPy's are those of its library for matrices."""
        torch = _torch()
        if torch:
            torch.set_num_threads(threads)

    def ways(self) -> dict[object, Work]:
        """What to time, by name: fp32, and int8 where it is to be had."""
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
        """The layer of `torch.ao.quantization.quantize_dynamic`."""
        torch = self._torch
        layer = torch.nn.Linear(*weights.shape, bias=False)
        layer.weight = torch.nn.Parameter(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it will move to a package of its own
            whole = torch.ao.quantization.quantize_dynamic(
                torch.nn.Sequential(layer), {torch.nn.Linear}, dtype=torch.qint8
            )
        quantised: Callable[[object], object] = whole[0]
        return quantised


def _torch() -> Any:  # noqa: ANN401 - a module
    try:
        import torch  # noqa: PLC0415 - no dependency
    except ImportError:
        return None
    return torch
