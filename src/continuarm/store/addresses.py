"""Addresses of stores, as they may be shown."""

import re

__all__ = ["without_password"]

IN_HOST = re.compile(r"//([^:@/]*):[^@/]*@")
IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&]*")


def without_password(address: str) -> str:
    """An address as it may be shown.

    >>> without_password("postgresql://shop:secret@db/shop?sslpassword=secret&x=1")
    'postgresql://shop:***@db/shop?sslpassword=***&x=1'
    """
    return IN_QUERY.sub(r"\1***", IN_HOST.sub(r"//\1:***@", address))
