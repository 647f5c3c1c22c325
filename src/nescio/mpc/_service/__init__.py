"""A service of private inference: a server of a plan for several clients, and its clients."""

from ._remote import RemoteModel, RemotePlan
from ._server import PlanServer, Served, ServiceLimits

__all__ = ["PlanServer", "RemoteModel", "RemotePlan", "Served", "ServiceLimits"]
