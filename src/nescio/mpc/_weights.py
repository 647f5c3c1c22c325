"""The weights of a network, prepared for the products of the offline phase."""

from functools import partial

from .. import _core
from .._arrays import as_count, as_threads
from ..errors import ArgumentError
from ._linear import POLYNOMIAL_BYTES, ServerWeights
from ._network import Network
from ._products import Product, ProductPlan

__all__ = ["PreparedWeights"]

DEFAULT_BYTES = 2 << 30


class PreparedWeights:
    """The weights of a network, prepared for `prepare`; several preparations may share them.

    Transformed weights take 32 KiB a polynomial (`Report.weight_bytes`). Up to `max_bytes` of them
    are kept, product by product. The others are kept as integers of 32 bits, and transformed for
    each inference: that takes more CPU time and gives the same products. Threads may share an
    object. `threads` is the number of CPU threads that prepare, 0 for all. Raises ArgumentError for
    weights that are too large.
    """

    def __init__(
        self, network: Network, *, max_bytes: int = DEFAULT_BYTES, threads: int = 0
    ) -> None:
        self._network, self._left = network, as_count(max_bytes, "max_bytes", 0, 1 << 60)
        pool = _core.ThreadPool(as_threads(threads))
        plan = ProductPlan.of(network.public)
        self.layers = [
            [self._prepared(number, product, pool) for product in own]
            for number, own in enumerate(plan.layers)
        ]

    def _prepared(self, number: int, product: Product, pool: _core.ThreadPool) -> ServerWeights:
        """Prepares a product of layer `number`, from 0."""
        size = product.polynomials * POLYNOMIAL_BYTES
        maps = [term.map for term in self._network.layers[number].terms]
        try:
            found = ServerWeights(
                product.encoding,
                partial(product.weights, maps),
                pool,
                present=product.present,
                keep_transformed=size <= self._left,
            )
        except ArgumentError as error:
            raise ArgumentError(f"layer {number + 1}: {error}") from error
        if size <= self._left:
            self._left -= size
        return found

    @property
    def kept_bytes(self) -> int:
        """The bytes that all weights take, transformed or not."""
        return sum(own.kept_bytes for layer in self.layers for own in layer)

    def check(self, network: Network) -> None:
        """Raises ArgumentError if these are the weights of another network."""
        if network is self._network or network.weights_digest == self._network.weights_digest:
            return
        raise ArgumentError(
            f"weights: found those of network {self._network.weights_digest[:12]}, expected those "
            f"of {network.weights_digest[:12]}: prepare them from the network that is passed"
        )
