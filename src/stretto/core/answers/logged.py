"""What a run of the log says: the answer that it was closed with, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping

from stretto.core.answers.words import quoted


def logged_answer(status: str, summary: Mapping[str, object]) -> str:
    """Return the answer of a run, the reason where it failed, and nothing where there is none yet."""
    answer = summary.get("answer")
    if isinstance(answer, str) and answer:
        return answer
    reason = summary.get("error", summary.get("reason"))
    if status == "failed" and isinstance(reason, str) and reason:
        return f"Failed: {quoted(reason)}."
    return ""
