"""What a scheduler believes about run times, one row each; see ``queues.kernels.estimates``."""

from __future__ import annotations

from stretto.queues.kernels import codes
from stretto.queues.rules import EstimateModel

USER = EstimateModel(codes.USER, "what the user asked for")
PERFECT = EstimateModel(codes.PERFECT, "the true run time; no scheduler knows it")
LAST_TWO = EstimateModel(codes.LAST_TWO, "mean of the user's last two ended jobs (Tsafrir et al. 2007)")
QUANTILE = EstimateModel(
    codes.QUANTILE, "the user's estimate times a quantile of run/estimate over the user's last jobs"
)
