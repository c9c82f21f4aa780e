"""Foreign load of the cores of a host: what it is now, and what it will be while a task runs."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.racks.host.parameters import HostParams

#: A core counts as loaded above this share, for how long loads last.
_LOADED = 0.15
#: Durations of phases that the assumed one counts for.
_PRIOR_PHASES = 2.0


class CoreLoads:
    """By core: the share of its time that a task there would lose to foreign programs.

    A load that comes and goes is close to its present value for as long as its phases usually last, and to its
    long-run mean after that.
    """

    def __init__(self, num_cores: int, params: HostParams | None = None) -> None:
        self.params = params or HostParams()
        self.now = np.zeros(num_cores)
        self.mean = np.zeros(num_cores)
        self.variance = np.full(num_cores, 0.04)
        self.raw = np.full(num_cores, np.nan)
        self._phase_s = np.full(num_cores, self.params.lasting_s * _PRIOR_PHASES)
        self._num_phases = np.full(num_cores, _PRIOR_PHASES)
        self._since_s = np.zeros(num_cores)  # of the present phase
        self._is_on = np.zeros(num_cores, dtype=bool)
        self._is_known = np.zeros(num_cores, dtype=bool)

    def take_in(self, lost: Floats, dt_s: float) -> None:
        """Take in the shares that were lost in the last ``dt_s`` seconds; NaN where nothing is known."""
        is_read = np.isfinite(lost)
        lost = np.clip(np.where(is_read, lost, 0.0), 0.0, 1.0)
        self.raw = np.where(is_read, lost, np.nan)
        gain = np.where(self._is_known, 1.0 - math.exp(-dt_s / self.params.load_s), 1.0)
        gain = np.where(is_read, gain, 0.0)
        surprise = lost - self.now
        self.now = self.now + gain * surprise
        self.variance = (1.0 - gain) * (self.variance + gain * surprise**2) + 1e-4
        slow = np.where(is_read, 1.0 - math.exp(-dt_s / self.params.mean_load_s), 0.0)
        self.mean = self.mean + slow * (lost - self.mean)
        self._is_known |= is_read
        self._note_phases(dt_s)

    def _note_phases(self, dt_s: float) -> None:
        self._since_s += dt_s
        is_on = np.where(self._is_on, self.now > 0.5 * _LOADED, self.now > _LOADED)
        ended = is_on != self._is_on
        self._phase_s += np.where(ended, self._since_s, 0.0)
        self._num_phases += ended
        self._since_s = np.where(ended, 0.0, self._since_s)
        self._is_on = is_on

    @property
    def lasting_s(self) -> Floats:
        """Mean length of a phase of each core."""
        return np.asarray(self._phase_s / self._num_phases)

    def forecast(self, horizon_s: float) -> Floats:
        """Return the mean share that is lost over the coming seconds."""
        ratio = max(horizon_s, 1e-6) / self.lasting_s
        weight = -np.expm1(-ratio) / ratio
        return np.asarray(self.mean + weight * (self.now - self.mean))
