"""Offers of another protocol, as curl and Java make them: a server may ignore them (RFC 9110)."""

from typing import Any

from httptools import HttpParserUpgrade, HttpRequestParser

__all__ = ["Parser"]

CONNECT = b"CONNECT"


class Parser(HttpRequestParser):
    """A parser that reads a request with such an offer as if it had none.

    It would stop behind the headers, and take the body for the other protocol. So it gets the
    headers once more, without the offer, and then what follows them.
    """

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)
        self._protocol = protocol
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's

    @property
    def is_offered(self) -> bool:
        """Whether the request whose headers have come will be read once more."""
        return self.should_upgrade() and self.get_method() != CONNECT

    def feed_data(self, data: Any) -> None:
        """See `HttpRequestParser`.

        Another parser goes on: this one would read nothing after a request that is the last one.
        """
        try:
            super().feed_data(data)
        except HttpParserUpgrade as offer:
            if self.get_method() == CONNECT:
                raise
            self._protocol.parser = Parser(self._protocol)
            self._protocol.parser.feed_data(self._plain() + data[offer.args[0] :])

    def _plain(self) -> bytes:
        """The headers that were read last, without the offer."""
        version = self.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.get_method(), self._protocol.url, version)]
        lines += [b"%s: %s" % one for one in self._protocol.headers if one[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"\r\n"])
