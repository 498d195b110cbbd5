"""The server of HTTP, and how it is run: in tests and demonstrations as in production."""

import sys
from typing import Any

from continuarm.service.connections import Connection
from continuarm.service.log import LOGGING

__all__ = ["OPTIONS", "allow_connections"]

OTHER_FILES = 256  # that a process has open, such as those of its store

#: for `uvicorn.Config`
OPTIONS: dict[str, Any] = {
    "http": Connection,
    "ws": "none",
    "access_log": False,
    "log_config": LOGGING,
    "log_level": "warning",
    "server_header": False,
    "proxy_headers": False,  # nobody asks who was behind a proxy
    "timeout_keep_alive": 75,  # longer than proxies keep a connection that is idle
    "timeout_graceful_shutdown": 10,
}


def allow_connections() -> None:
    """Let this process have as many files open as connections, or as few connections as files."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = Connection.limits.connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        most = max(soft - OTHER_FILES, soft // 2)
        Connection.limits = Connection.limits._replace(connections=most)
