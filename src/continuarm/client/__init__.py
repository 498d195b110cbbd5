"""Clients of the service: the verbs of a policy, over HTTP."""

from continuarm.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
