"""Pegasus DAX, the XML of abstract workflows, schema 2.x and 3.x.

The parser refuses entity declarations, so neither external entities nor exponential
expansion can happen.
"""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.filegraph import FileGraph
from stretto.files.sniff import graph_name

_TASKS = ("job", "dax", "dag")
_MAX_DEPTH = 64


class Dax:
    """Reads one workflow per file."""

    summary = "Pegasus DAX XML 2.x and 3.x: jobs with runtimes, files with sizes"
    endings = ("dax", "xml")

    def matches(self, document: Document) -> bool:
        return b"<adag" in document.head or b":adag" in document.head

    def read(self, document: Document) -> TaskGraph:
        reader = _Reader(document)
        reader.parse()
        return reader.graph()


class _Reader:
    """Follows the elements; ``line`` is where the parser stands."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.build = GraphBuilder(graph_name(document))
        self.files = FileGraph(self.build)
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.depth = 0
        self.job: dict[str, str] | None = None
        self.job_line = 0
        self.uses: list[dict[str, str]] = []
        self.child: str | None = None
        self.profile: str | None = None
        self.text = ""
        self.edges: list[tuple[str, str, int]] = []

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def fail(self, message: str, field: str | None = None) -> NoReturn:
        self.document.fail(message, line=self.line, field=field)

    def parse(self) -> None:
        parser = self.parser
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.EntityDeclHandler = self.entity
        parser.buffer_text = True
        try:
            parser.Parse(self.document.data, True)
        except expat.ExpatError as error:
            self.document.fail(f"wrong XML: {expat.ErrorString(error.code)}", line=error.lineno)
        except (LookupError, ValueError) as error:  # an unknown or mismatched encoding
            self.document.fail(f"wrong XML: {error}", line=self.line)

    def entity(self, name: str, *_: object) -> None:
        self.fail("entity declarations are refused", field=f"entity {name}")

    def characters(self, text: str) -> None:
        if self.profile is not None:
            self.text += text

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = tag.rpartition("}")[2]
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"elements are nested more than {_MAX_DEPTH} deep")
        if self.depth == 1:
            if element != "adag":
                self.fail(f"the document is a <{element}>, not an <adag>")
            self.build.meta[DURATIONS] = RECORDED
            self.build.meta.update(format="dax", version=attributes.get("version", ""))
        elif element in _TASKS:
            if self.job is not None:
                self.fail(f"<{element}> inside another job")
            self.job, self.job_line, self.uses = dict(attributes), self.line, []
        elif element == "uses" and self.job is not None:
            self.uses.append(attributes)
        elif element == "profile" and self.job is not None:
            self.profile, self.text = attributes.get("key", ""), ""
        elif element == "child":
            self.child = self.needed(attributes, "ref", "child")
        elif element == "parent":
            if self.child is None:
                self.fail("<parent> outside of a <child>")
            self.edges.append((self.child, self.needed(attributes, "ref", "parent"), self.line))

    def needed(self, attributes: dict[str, str], key: str, element: str) -> str:
        if not attributes.get(key):
            self.fail(f"<{element}> has no {key}", field=key)
        return attributes[key]

    def end(self, tag: str) -> None:
        element = tag.rpartition("}")[2]
        self.depth -= 1
        if element == "profile" and self.profile is not None:
            assert self.job is not None  # profiles are only followed inside a job
            if self.profile.lower() == "runtime":
                self.job.setdefault("runtime", self.text.strip())
            self.profile = None
        elif element in _TASKS and self.job is not None:
            self.finish_job(self.job)
            self.job = None
        elif element == "child":
            self.child = None

    def finish_job(self, job: dict[str, str]) -> None:
        name = self.needed(job, "id", "job")
        if name in self.build:
            self.document.fail("two jobs have this id", line=self.job_line, field=f"job {name}")
        if "runtime" not in job:
            self.document.fail("there is no runtime", line=self.job_line, field=f"job {name}")
        runtime_s = self.document.number(job["runtime"], f"job {name}.runtime", line=self.job_line)
        task = self.build.task(name, runtime_s, category=job.get("name", ""))
        for use in self.uses:
            file = use.get("file") or use.get("name")
            if not file:
                self.fail("<uses> names no file", field=f"job {name}")
            self.files.size(file, self.document.number(use.get("size") or 0, f"file {file}.size", line=self.job_line))
            link = use.get("link", "").lower()
            if link in ("input", "inout"):
                self.files.reads(task, file)
            if link in ("output", "inout"):
                self.files.writes(task, file)

    def graph(self) -> TaskGraph:
        for child, parent, line in self.edges:
            for label in (child, parent):
                if label not in self.build:
                    self.document.fail(f"unknown job {label!r}", line=line, field="ref")
            self.files.depends(
                self.build.find(child, wanted_by="child"), self.build.find(parent, wanted_by=f"job {child}")
            )
        self.files.finish()
        try:
            return self.build.graph()
        except InvalidInput as error:
            raise error.at(self.document.name) from None


FORMAT = Dax()
