"""What the service does, as a table: from it come the routes and the OpenAPI page."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from continuarm.service import messages
from continuarm.version import __version__

__all__ = ["Operation", "openapi"]


class Operation(NamedTuple):
    """One thing that can be asked for.

    takes : the type of the request's body; None: there is none.
    gives : the type of the answer, or those of an answer to one and to several.
    statuses : those of refusals, beside those that every request may meet.
    scope : that a token needs for it.
    query : what the query may say; `"context"` is the context by name, `"along[]"` one or two
        times `along`.
    """

    method: str
    path: str
    summary: str
    takes: type | None
    gives: type | tuple[type, ...]
    statuses: tuple[int, ...]
    handler: Callable[..., Awaitable[Any]]
    scope: str
    query: tuple[str, ...] = ()


ALWAYS = (401, 403, 429, 503)
REFUSED = {
    401: "A token is needed.",
    403: "The token's scope does not reach so far, or a page of others asks.",
    400: "The request is not as this page says.",
    404: "There is no such experiment, decision or bin.",
    409: "It conflicts with what was done before.",
    413: "The request is too large.",
    422: "A value breaks its rule.",
    429: "The token asks for too much.",
    503: "It cannot be done now; nothing is half done. Try again.",
}
WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
NAME = {"type": "string"}
QUERY: dict[str, dict[str, Any]] = {
    "after": WHOLE,
    "most": WHOLE | {"minimum": 1},
    "points": WHOLE | {"minimum": 1},
    "parts": WHOLE | {"minimum": 1},
    "along": NAME,
    "along[]": {"type": "array", "items": NAME, "maxItems": 2},
    "over": NAME,
    "context": {"type": "object", "additionalProperties": {"type": "number"}},
}


def openapi(operations: list[Operation]) -> dict[str, Any]:
    """The page of all operations."""
    kinds = {op.takes for op in operations if op.takes}
    kinds |= {kind for op in operations for kind in _given(op)}
    ordered = sorted([*kinds, messages.Refusal], key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for op in operations:
        paths.setdefault(op.path, {})[op.method.lower()] = _described(op, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Continuarm", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(op: Operation, schema_of: dict[type, Any]) -> dict[str, Any]:
    done = "201" if op.method == "PUT" else "200"
    given = [schema_of[kind] for kind in _given(op)]
    schema = given[0] if len(given) == 1 else {"anyOf": given}
    answers = {done: _content("Done.", schema)}
    if op.method == "PUT":
        answers["200"] = _content("It was there already.", schema)
    for status in sorted({*op.statuses, *ALWAYS}):
        answers[str(status)] = _content(REFUSED[status], schema_of[messages.Refusal])
    found: dict[str, Any] = {"summary": op.summary, "responses": answers, "x-scope": op.scope}
    parameters = [_in_path(word) for word in re.findall(r"{(\w+)}", op.path)]
    parameters += [_in_query(word) for word in op.query]
    if parameters:
        found["parameters"] = parameters
    if op.takes is not None:
        content = {"application/json": {"schema": schema_of[op.takes]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _given(op: Operation) -> tuple[type, ...]:
    return op.gives if isinstance(op.gives, tuple) else (op.gives,)


def _in_path(word: str) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 100}
    return {"name": word, "in": "path", "required": True, "schema": text}


def _in_query(word: str) -> dict[str, Any]:
    return {"name": word.removesuffix("[]"), "in": "query", "schema": QUERY[word]}


def _content(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
