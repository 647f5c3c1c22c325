"""Two-party private inference: one party has a model, the other one an input.

    prepare(channel, network, path, 100)            prepare(channel, public, path, 100)
    server = Server(channel, network, path)         client = Client(channel, public, path)
    server.serve()                                  outputs = client.infer(inputs)

`PlanServer` serves a `Plan` to several clients, each with a `RemotePlan`.

The client learns the outputs, and no more of the weights; the server learns nothing of inputs and
outputs. A `Network` has linear layers of integers, and activations by tables, all modulo 2^32; the
client needs its `public` part. `Network.simulate` computes in clear what the parties compute.

Security model: semi-honest parties, static corruption. **A client that deviates from the protocol
can learn the weights; a server that deviates can falsify the outputs, and nothing shows that the
input stays secret from it.** Public are the shapes of the layers, the tables and their windows, and
the number of inferences. docs/security.md has the rest; docs/private-inference.md explains the
protocol.

Source: Lam et al., "Tabula: Efficiently Computing Nonlinear Activation Functions for Secure Neural
Network Inference" (2022), for activations by one-time tables.
"""

from ._activation import Activation
from ._dealer import insecure_dealer
from ._maps import Convolution, Dense
from ._network import Layer, Network, Simulated, Term
from ._plans.compiler import compile  # noqa: A004 - the field's word
from ._plans.model import InputRangeWarning, OutputRangeWarning, PrivateModel
from ._plans.plan import Plan, Prediction, PublicPlan
from ._plans.report import LayerReport, Report
from ._public import PublicNetwork
from ._service import PlanServer, RemoteModel, RemotePlan, Served, ServiceLimits
from ._session import Client, Server, prepare
from ._steps import Step
from ._weights import PreparedWeights

__all__ = [
    "Activation",
    "Client",
    "Convolution",
    "Dense",
    "InputRangeWarning",
    "Layer",
    "LayerReport",
    "Network",
    "OutputRangeWarning",
    "Plan",
    "PlanServer",
    "Prediction",
    "PreparedWeights",
    "PrivateModel",
    "PublicNetwork",
    "PublicPlan",
    "RemoteModel",
    "RemotePlan",
    "Report",
    "Served",
    "Server",
    "ServiceLimits",
    "Simulated",
    "Step",
    "Term",
    "compile",
    "insecure_dealer",
    "prepare",
]
