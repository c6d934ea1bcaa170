"""The declaration of a stage's function: see "Stages" in docs/python.md."""

from __future__ import annotations

from typing import Any, Callable, Literal, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


@overload
def stage(function: F, /) -> F: ...
@overload
def stage(*, by: Literal["partition"] | None = None, of: str | None = None, state: bool = False) -> Callable[[F], F]: ...
def stage(function: Any = None, /, *, by: str | None = None, of: str | None = None, state: bool = False) -> Any:
    """Declares how the function of a `uses: python` stage is called. The function itself is not changed.

    Args:
        by: `"partition"` calls it once for each partition of one data set, each cached by itself; without it, it is called once.
        of: the input with the partitions; not needed where the stage has one data set.
        state: hands what a call leaves in `ctx.state` to the next call, by date and by symbol within a date range, pickled.

    Raises:
        ValueError: `by` is anything else.
    """
    if by not in (None, "partition"):
        raise ValueError(f'`by` is {by!r}, not "partition"')

    def declare(function: F) -> F:
        function.__runner_stage__ = {"by": by, "of": of, "state": bool(state)}  # type: ignore[attr-defined]
        return function

    return declare if function is None else declare(function)
