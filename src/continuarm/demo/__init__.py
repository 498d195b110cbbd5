"""A demonstration: the service, and a chain of supermarkets that asks it for prices."""

from continuarm.demo.running import demonstrate

__all__ = ["demonstrate"]
