"""Which steps of a loop make a recording: those that begin with the same memory.

A recording compares what its steps allocate and where they peak. A step that begins with other bytes (behind a
validation that dropped the gradients, at the beginning of an epoch, which still has the last batch) is another step,
and would end it. What is kept from then on (a metric's 4 bytes) moves all peaks behind it by as much.
"""

from __future__ import annotations

from typing import Literal

Decision = Literal["record", "leave out", "record from here"]

_MOST_AGAIN = 3  # recordings that begin anew
_MOST_IN_A_ROW = 4  # steps that are left out


class AlikeSteps:
    """Asked ahead of each step of a loop while a recording is made.

    A step that begins with other bytes than the recorded ones is left out; where the next one begins as it did, the
    recording begins anew with that one. Where too many are left out, or it has begun anew too often, all steps are
    recorded, and the recording says what is unlike.
    """

    def __init__(self, warmup: int) -> None:
        """warmup: the recording's first steps, which it does not compare."""
        self._warmup = warmup
        self._level: int | None = None  # of the recorded steps
        self._odd: int | None = None  # of the step that was left out ahead of this one
        self._left_out = 0  # in a row
        self._again = 0
        self._gives_up = False
        self._begun_with: list[int] = []  # the last two steps

    def of(self, begins_with: int, recorded: int) -> Decision:
        """What becomes of the step that begins with these bytes; recorded: how many steps the recording has."""
        self._begun_with = [*self._begun_with[-1:], begins_with]
        if self._gives_up or recorded < self._warmup or begins_with == self._level:
            self._level = begins_with
            self._odd, self._left_out = None, 0
            return "record"
        if begins_with == self._odd:
            self._level = begins_with
            self._odd, self._left_out = None, 0
            if recorded == self._warmup:
                return "record"  # the odd one was the last step of the warm-up
            self._again += 1
            self._gives_up = self._again == _MOST_AGAIN
            return "record from here"
        self._odd = begins_with
        self._left_out += 1
        self._gives_up = self._left_out == _MOST_IN_A_ROW
        return "leave out"

    @property
    def grown_bytes(self) -> int:
        """By how much the last step began with more bytes than the one ahead of it."""
        return max(0, self._begun_with[-1] - self._begun_with[0]) if self._begun_with else 0
