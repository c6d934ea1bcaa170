"""Paper accounts and their ledgers."""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program
from ._runs import Directory

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Ledger:
    """The entries of a paper account, in order. Its chain was verified when the account was read."""

    def __init__(self, name: str, directory: Directory):
        self._name = name
        self._directory = directory

    def __repr__(self) -> str:
        return f"<Ledger {self._name}, {len(self.entries)} entries>"

    @property
    def path(self) -> Path:
        """The file, JSON lines, which is never written to but by `runner paper`."""
        return _program.home(self._directory) / "paper" / f"{self._name}.jsonl"

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The entries as the file has them: nights with bookings, book and orders, transfers, fills and the rest."""
        with self.path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def to_arrow(self) -> pyarrow.Table:
        """The entries as rows of one table: a night is a row for itself and one for each booking, position and order.

        Raises:
            Error: the account's past was changed.
        """
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "ledger.parquet"
            _program.document(["paper", "export", self._name, str(file), "--format", "parquet"], self._directory)
            return pyarrow.parquet.read_table(file)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_arrow` as pandas' frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows of `to_arrow` as Polars' frame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def statement(self, start: str | None = None, end: str | None = None) -> str:
        """The statement of the nights from `start` to `end` (dates as text), as a broker writes one.

        Raises:
            Error: there is no night in the period.
        """
        period = [word for name, date in (("--from", start), ("--to", end)) if date for word in (name, date)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "statement.txt"
            _program.document(["paper", "export", self._name, str(file), "--format", "statement", *period], self._directory)
            return file.read_text(encoding="utf-8")


class Account:
    """A paper account as it stands.

    Attributes:
        name: its name.
        state: `open`, `halted` or `closed`.
        policy: name and digest of the policy that acts.
        opened: its first entry: policy, capital, limits and the promise.
        night: its last night; `None` before the first.
        ledger: its entries.
    """

    def __init__(self, name: str, directory: Directory = None):
        """The account `name`.

        Raises:
            Error: there is none of this name, or its past was changed.
        """
        found = _program.document(["paper", "show", name], directory)
        self._directory = directory
        self.name: str = found["name"]
        self.state: str = found["state"]
        self.policy: dict[str, str] = found["policy"]
        self.opened: dict[str, Any] = found["opened"]
        self.night: dict[str, Any] | None = found["night"]
        self.ledger = Ledger(name, directory)

    def __repr__(self) -> str:
        return f"<Account {self.name}, {self.state}, {self.policy['name']}>"

    @property
    def slippage(self) -> dict[str, Any]:
        """The fills that a broker reported, their slippage, and the orders that it filled otherwise than the model."""
        return _program.document(["paper", "fills", self.name], self._directory)


def paper(name: str, *, directory: Directory = None) -> Account:
    """The paper account `name`.

    Raises:
        Error: there is none of this name, or its past was changed.
    """
    return Account(name, directory)
