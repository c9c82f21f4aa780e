"""Slurm through slurmrestd: what a steering layer needs, over HTTP, with a token (JWT).

The versions of the interface differ in what a job's update may say: site factors came with v0.0.39, and are sent there
as Slurm stores them, above an offset. All of them can hold a job, release it, and set its priority.
"""

from __future__ import annotations

import base64
import getpass
import json
import os
import re
import stat
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stretto.core.host.safe_text import shown_on_one_line
from stretto.engines.slurm.client.errors import WAITS_NO_LONGER, SlurmRefused, SlurmUnreachable
from stretto.engines.slurm.client.jobs import SlurmJob, SlurmNode, parse_jobs, parse_nodes
from stretto.errors import InvalidInput
from stretto.files.traces.slurm_values import json_number

#: Of the interface; of those that a daemon offers, the newest up to the last is taken.
_LAST_KNOWN = (0, 0, 42)
_SITE_FACTORS_SINCE = (0, 0, 39)
#: What Slurm adds to site factors, so that they are never negative (NICE_OFFSET in slurm.h).
_OFFSET = 0x80000000
_MOST_BYTES = 1 << 28
_TIMEOUT_S = 15.0
_PATH = re.compile(r"^/slurm/v(\d+)\.(\d+)\.(\d+)/jobs/?$")

Version = tuple[int, ...]


@dataclass(frozen=True)
class RestPlace:
    """Where slurmrestd is, and where its token is kept: the token itself is never part of this.

    Attributes
    ----------
    token_file
        Read anew for every request, since tokens expire; None takes ``SLURM_JWT`` from the environment.
    """

    url: str
    token_file: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInput(f"{self.url!r} is not a URL like http://127.0.0.1:6820", field="--rest")

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read the token."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")

    def token(self) -> str:
        """Return the token; raise InvalidInput where there is none, or where others can read it."""
        if self.token_file is None:
            text, where = os.environ.get("SLURM_JWT", ""), "SLURM_JWT"
        else:
            path, where = Path(self.token_file), self.token_file
            try:
                if path.stat().st_mode & stat.S_IRWXO:
                    raise InvalidInput(
                        "other users can read this file; protect it with: chmod o= FILE",
                        source=where,
                        field="--token-file",
                    )
                text = path.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInput(f"cannot be read: {error}", source=where, field="--token-file") from None
        found = text.strip().removeprefix("SLURM_JWT=")  # as scontrol prints it
        if not found or any(letter.isspace() for letter in found):
            raise InvalidInput("holds no token; make one with: scontrol token", source=where, field="--token-file")
        return found


@dataclass(frozen=True)
class RestClient:
    """One Slurm, by its slurmrestd."""

    place: RestPlace

    @cached_property
    def version(self) -> Version:
        """The version of the interface that is spoken."""
        paths = self._ask("GET", "/openapi/v3").get("paths")
        matches = [_PATH.match(path) for path in paths] if isinstance(paths, dict) else []
        offered = sorted(tuple(int(part) for part in match.groups()) for match in matches if match is not None)
        if not offered:
            raise InvalidInput(
                f"{self.place.url} has no interface to jobs; is slurmrestd running there?", field="--rest"
            )
        return max([found for found in offered if found <= _LAST_KNOWN], default=offered[0])

    @property
    def has_site_factors(self) -> bool:
        """Whether site factors can be set through it."""
        return self.version >= _SITE_FACTORS_SINCE

    def queue(self, partition: str | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all, that the controller still knows; ended ones among them."""
        found = parse_jobs(json.dumps(self._ask("GET", self._path("jobs"))))
        return [job for job in found if job.is_in(partition)]

    def nodes(self) -> list[SlurmNode]:
        """Return the nodes."""
        return parse_nodes(json.dumps(self._ask("GET", self._path("nodes"))))

    def factors(self) -> None:
        """Return None: slurmrestd does not show what a priority is made of."""
        return None

    def reservations(self) -> dict[str, tuple[str, float]]:
        """Return the start of each reservation: as text, and in Unix seconds."""
        found = self._ask("GET", self._path("reservations")).get("reservations")
        entries = [entry for entry in (found if isinstance(found, list) else []) if isinstance(entry, dict)]
        starts = {str(entry.get("name")): json_number(entry.get("start_time")) for entry in entries}
        return {name: (str(start_s), start_s) for name, start_s in starts.items()}

    def partitions(self) -> list[str]:
        """Return the names of the partitions."""
        found = self._ask("GET", self._path("partitions")).get("partitions")
        entries = found if isinstance(found, list) else []
        names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
        return [shown_on_one_line(name) for name in names if isinstance(name, str)]

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Change a waiting job; return False where it waits no longer, or is held and cannot be changed now."""
        body: dict[str, int | str | bool] = dict(settings)
        if "sitefactor" in body:
            if not self.has_site_factors:
                raise SlurmRefused(f"slurmrestd {self._name} cannot set site factors; use --mode priority")
            body["site_factor"] = _OFFSET + int(body.pop("sitefactor"))
        return self._change(job, body)

    def restore_priority(self, job: int | SlurmJob) -> bool:
        """Let Slurm compute a job's priority again after somebody set it: that takes a hold and a release."""
        return self._change(job, {"hold": True}) and self.release(job)

    def release(self, job: int | SlurmJob) -> bool:
        """Let a job that is held go on; Slurm computes its priority again, also where it was not held."""
        return self._change(job, {"hold": False})

    def _change(self, job: int | SlurmJob, body: dict[str, int | str | bool]) -> bool:
        number = job.job_id if isinstance(job, SlurmJob) else job
        try:
            self._ask("POST", self._path(f"job/{number}"), body)
        except SlurmRefused as error:
            if WAITS_NO_LONGER.search(str(error)):
                return False
            raise
        return True

    @property
    def _name(self) -> str:
        return "v" + ".".join(map(str, self.version))

    def _path(self, what: str) -> str:
        return f"/slurm/{self._name}/{what}"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer; raise SlurmUnreachable when there is none, SlurmRefused when it is a complaint."""
        token = self.place.token()
        headers = {"X-SLURM-USER-NAME": _user_of(token), "X-SLURM-USER-TOKEN": token, "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.place.url.rstrip("/") + path, data, headers, method=method)
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as response:
                answer = _decoded(response.read(_MOST_BYTES + 1))
        except urllib.error.HTTPError as error:
            answer = _decoded(error.read(_MOST_BYTES + 1)) | {"status": error.code}
        except (OSError, ValueError) as error:
            raise SlurmUnreachable(f"slurmrestd at {self.place.url} does not answer: {error}") from None
        return _checked(answer, f"{method} {path}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the token is for one address only.

    urllib, not httpx: two calls every few seconds need neither connection pools nor another dependency.
    """

    def redirect_request(self, *words: Any, **options: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


def _decoded(data: bytes) -> dict[str, Any]:
    if len(data) > _MOST_BYTES:
        raise SlurmUnreachable(f"slurmrestd's answer is longer than {_MOST_BYTES:,} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"errors": [{"error": data[:200].decode(errors="replace")}]}


def _checked(answer: dict[str, Any], what: str) -> dict[str, Any]:
    """Return an answer without errors; 22.05 reports some of them with a status of 200."""
    errors, status = answer.get("errors"), answer.pop("status", 200)
    if not errors and status == 200:
        return answer
    text = json.dumps(errors)[:400] if errors else "no reason given"
    is_away = re.search(r"unable to contact|connection refused|zero bytes|timed out", text, re.IGNORECASE)
    raise (SlurmUnreachable if is_away else SlurmRefused)(f"slurmrestd, {what}: status {status}, {text}")


def _user_of(token: str) -> str:
    """Return the user that a token was made for, as it says itself; otherwise who we are."""
    try:
        claims = token.split(".")[1]
        name = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sun"]
    except (IndexError, KeyError, TypeError, ValueError):
        name = None
    return name if isinstance(name, str) and name.isprintable() else getpass.getuser()
