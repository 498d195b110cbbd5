"""Clients of the service: the verbs of a policy, over HTTP."""

from continuarm.client.asynchronous import AsyncClient
from continuarm.client.clients import Client

__all__ = ["AsyncClient", "Client"]
