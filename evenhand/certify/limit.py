"""A limit of time, told where progress is: when it is over, what Ctrl-C would do happens."""

from __future__ import annotations

import time
from collections.abc import Callable

from evenhand.certify.statement import Progress, say


class TimeLimit:
    """So many seconds from now on, or none."""

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds must be above 0, not {seconds}; leave it out for no limit")
        self.seconds, self.began = seconds, time.perf_counter()

    def left(self) -> float | None:
        """Seconds until it is over; None without a limit."""
        return None if self.seconds is None else max(0.0, self.began + self.seconds - time.perf_counter())

    def half_over(self) -> bool:
        return self.seconds is not None and time.perf_counter() > self.began + 0.5 * self.seconds

    def half(self, progress: Progress) -> Progress:
        """Progress that ends what it is told of when half of the time is over."""
        return self._limited(progress, 0.5)

    def whole(self, progress: Progress) -> Progress:
        """The same at the end of the time."""
        return self._limited(progress, 1.0)

    def _limited(self, progress: Progress, share: float) -> Progress:
        if self.seconds is None:
            return progress
        end = self.began + share * self.seconds
        return _ending(progress, end)


def _ending(progress: Progress, end: float) -> Callable[[str], None]:
    def tell(text: str) -> None:
        say(progress, text)
        if time.perf_counter() > end:
            raise KeyboardInterrupt

    return tell
