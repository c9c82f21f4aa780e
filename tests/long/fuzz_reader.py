"""One fuzz run of one reader, coverage-guided: ``python fuzz_reader.py FORMAT SECONDS [SEED FILES...]``.

Run in a process of its own, because atheris owns the process. Any exception that is not a StrettoError
ends it with a non-zero code and the input that did it.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["stretto.files", "stretto.core"]):
    from stretto import catalog, registry
    from stretto.errors import StrettoError
    from stretto.files.document import Document, unpack


def main() -> None:
    name, seconds, corpus = sys.argv[1], sys.argv[2], sys.argv[3]
    reader = registry.lookup("format", name, catalog.FORMATS)

    def one(data: bytes) -> None:
        try:
            document = Document("fuzz", unpack(data, "fuzz", max_bytes=1 << 22))
            reader.matches(document)
            reader.read(document)
        except StrettoError:
            pass

    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=4096", corpus], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
