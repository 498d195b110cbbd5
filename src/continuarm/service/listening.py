"""Addresses: which are loopback, and whether one can be listened on."""

import errno
import ipaddress
import socket
from functools import lru_cache

from continuarm.errors import SettingsError

__all__ = ["bound", "is_loopback"]


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host, by its name or its address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """A socket at an address, or one clear line; port 0 is any that is free.

    is_shared : whether other sockets may have the same address.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise SettingsError(
            f"`host` must be an address of this machine, but got {host!r}: {error}"
        ) from None
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        found.bind(address)
    except OSError as error:
        found.close()
        raise _refused(host, port, error) from None
    return found


def _refused(host: str, port: int, error: OSError) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return SettingsError(f"`port` must be free, but {port} is taken")
    return SettingsError(
        f"`host` and `port` must be an address to listen on, but got {host!r} and {port}: "
        f"{error.strerror}"
    )
