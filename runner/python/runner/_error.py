"""The exception of this package."""

from __future__ import annotations


class Error(Exception):
    """A failure with a hint at its solution.

    Attributes:
        message: what is wrong, and where.
        hint: what to do about it, or `None`.
        code: the exit code of the program, or `None` where none ran.
    """

    def __init__(self, message: str, hint: str | None = None, code: int | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n   hint: {self.hint}"
