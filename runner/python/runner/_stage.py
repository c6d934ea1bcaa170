"""The declaration of a function that is a stage. The driver of `uses: python` stages runs this same file, on any Python from 3.9 on."""

from __future__ import annotations

from typing import Any, Callable, Literal, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


@overload
def stage(function: F, /) -> F: ...
@overload
def stage(
    *, by: Literal["symbol", "partition"] | None = None, of: str | None = None, lookback: int | None = None, state: bool = False
) -> Callable[[F], F]: ...
def stage(function: Any = None, /, *, by: str | None = None, of: str | None = None, lookback: int | None = None, state: bool = False) -> Any:
    """Declares how the function of a `uses: python` stage is called. The function itself is not changed. Without arguments it is called once, with all rows.

    Args:
        by: `"symbol"` calls it for each symbol of one data set, with all rows of the symbol, or with those of one partition at a time if `lookback` or `state`
            is given; `"partition"` calls it for each partition with the rows of all its symbols. `"symbol"` where only another argument is given.
        of: the input with the symbols and partitions; not needed where the stage has one data set.
        lookback: the number of rows of the same symbol that are given before those of the partition. What the function returns for them is dropped.
        state: hands what a call leaves in `ctx.state` to the next one: to that of the symbol's next partition, or of the next partition, by date. Pickled.

    Raises:
        ValueError: `by` or `lookback` is anything else.
    """
    if by not in (None, "symbol", "partition"):
        raise ValueError(f'`by` is {by!r}, not "symbol" or "partition"')
    if lookback is not None and (type(lookback) is not int or lookback < 0):
        raise ValueError(f"`lookback` is {lookback!r}, not a number of rows")
    if by is None and (of is not None or lookback is not None or state):
        by = "symbol"

    def declare(function: F) -> F:
        function.__runner_stage__ = {"by": by, "of": of, "lookback": lookback, "state": bool(state)}  # type: ignore[attr-defined]
        return function

    return declare if function is None else declare(function)
