"""A small network of all kinds of layers, and stores of it by a dealer, or by both parties."""

import numpy as np

from mpc.layers import relu, weights
from mpc.relay import relayed
from nescio import _core
from nescio.mpc import _material as material
from nescio.mpc._activation import Activation
from nescio.mpc._dealer import insecure_deal
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._online import dithers_of
from nescio.mpc._public import PublicNetwork
from nescio.mpc._session import Client, Server, prepare
from nescio.mpc._store_writer import StoreWriter

POOL = _core.ThreadPool(1)


def small_network(random, *, bits=5, shift=4):
    """A convolution, a residual layer with a shortcut, and a matrix product."""
    activation = Activation(relu, bits=bits, low=-8)
    first = Convolution(weights(random, 2, 1, 2, 2), (1, 3, 3))
    second, shortcut = (Convolution(weights(random, 2, 2, 1, 1), (2, 2, 2)) for _ in range(2))
    last = Dense(weights(random, 3, 8), (2, 2, 2))
    return Network(
        (1, 3, 3),
        (
            Layer((Term(0, first),), weights(random, 2), activation, shift),
            Layer((Term(1, second), Term(1, shortcut)), weights(random, 2), activation, shift),
            Layer((Term(2, last),), weights(random, 3)),
        ),
    )


def input_of(network, random):
    return random.integers(-20, 20, network.inputs).astype(np.int32).view(np.uint32)


class Dealt:
    """Both parties' stores of inferences by the dealer, whose outcome the simulator knows."""

    def __init__(self, network, folder, count, seed=1, session="ab" * 32):
        random = np.random.default_rng(seed)
        self.network, self.public = network, PublicNetwork.of(network)
        self.client, self.server = folder / "client.store", folder / "server.store"
        self.pairs = [insecure_deal(network, 1, random) for _ in range(count)]
        parties = (self.public, self.client), (network, self.server)
        for number, (own, path) in enumerate(parties):
            contents = material.contents(own, session, count)
            with StoreWriter(path, contents) as writer:
                for pair in self.pairs:
                    writer.add(material.encode(self.public, pair[number]))

    def expected(self, number, x):
        """Returns the outputs of prepared inference `number`."""
        return self.network.simulate(x[None], dithers_of(self.pairs[number][0])).outputs[0]

    def infer(self, *inputs):
        """Returns a client that runs inferences with its store."""

        def client(channel):
            with Client(channel, self.public, self.client, threads=1) as party:
                return [party.infer(x) for x in inputs]

        return client

    def serve(self, count=1):
        """Returns a server that serves inferences with its store."""

        def server(channel):
            with Server(channel, self.network, self.server, threads=1) as party:
                for _ in range(count):
                    party.serve()

        return server


class Preparation:
    """Prepares inferences in new files of a folder, again and again."""

    def __init__(self, network, folder, count=2):
        self._network, self._folder, self._count, self._trial = network, folder, count, 0

    def run(self, change=None, timeout=20, networks=None):
        self._trial += 1
        public, whole = networks or (PublicNetwork.of(self._network), self._network)
        self.paths = [self._folder / f"{role}{self._trial}" for role in ("client", "server")]
        return relayed(
            lambda channel: prepare(channel, public, self.paths[0], self._count, threads=1),
            lambda channel: prepare(channel, whole, self.paths[1], self._count, threads=1),
            change,
            timeout,
        )

    def left(self):
        return [path for path in self._folder.iterdir() if str(self._trial) in path.name]
