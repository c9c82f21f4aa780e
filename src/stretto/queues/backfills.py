"""Ways of backfilling, one row each; ``queues.reference.replay`` says what they mean."""

from __future__ import annotations

from stretto.queues.kernels import codes
from stretto.queues.rules import Backfill

NONE = Backfill(codes.NONE, "no job starts before the head of the queue")
EASY = Backfill(codes.EASY, "later jobs start if they do not delay the head (Lifka 1995)")
EASY_SJBF = Backfill(codes.EASY_SHORTEST, "EASY that looks at short jobs first (Tsafrir et al. 2007)")
CONSERVATIVE = Backfill(codes.CONSERVATIVE, "later jobs start if they delay no job before them")
SLACK = Backfill(codes.SLACK, "EASY that may delay the head by a share of its estimate")
