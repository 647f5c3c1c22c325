"""One connection to a server: its limits, its TLS handshake, its HTTP."""

from ._limits import Admission, ConnectionLimits, client_address

__all__ = ["Admission", "ConnectionLimits", "client_address"]
