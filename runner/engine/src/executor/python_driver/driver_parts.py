"""Calls of a function by symbol and by partition.

| declared | a call has | cached by |
| --- | --- | --- |
| `by="symbol"` | all rows of a symbol | symbol |
| `by="symbol"` with `lookback` or `state` | the rows of a symbol in a partition, after the rows of the lookback | partition |
| `by="partition"` | the rows of a partition, those of each symbol after its rows of the lookback | partition |

The engine derives the same parts in the same order (`python_parts.rs`).
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys

from driver_calls import check_arguments, results, run, with_settings
from driver_check import check
from driver_tables import Part, Refused, concat, is_data_set, joined, load_arrow, read_input, read_tables, to_table, write_table

# The number of partitions that are held in memory for the lookback of later ones.
HELD = 64


class Calls:
    """The calls of a function with parts of its input `of`."""

    def __init__(self, function, mark, request, ctx, of):
        self.function, self.ctx, self.of = function, ctx, of
        self.call, self.outputs = request["call"], request["outputs"]
        self.by, self.lookback, self.state = mark["by"], mark["lookback"] or 0, mark["state"]
        self.has_whole_symbols = self.by == "symbol" and mark["lookback"] is None and not mark["state"]
        arguments = {name: read_input(port) for name, port in request["inputs"].items() if name != of}
        self.arguments = with_settings(function, arguments, request["with"])
        self.dropped = 0
        check_arguments(function, self.call, {**self.arguments, of: None})

    def once(self, table, name, symbol=None, own=None, state=None):
        """Calls the function with a table. Returns the table of each output, without the rows before the dates `own`, and the state."""
        ctx = self.ctx
        ctx.partition, ctx.symbol, ctx.own = name, symbol, own
        # A state is read back even from the call just made, so that a cached one has the same effect.
        ctx.state = pickle.loads(state) if state is not None else None
        value = run(self.function, self.call, ctx, {**self.arguments, self.of: table})
        tables = {}
        for output, result in results(value, self.call, self.outputs).items():
            result = to_table(result, f"the output `{output}` of `{self.call}`")
            tables[output] = self.without_lookback(result, output, own) if self.lookback else result
        if not self.state:
            return tables, None
        try:
            return tables, pickle.dumps(ctx.state, protocol=5)
        except Exception as err:
            raise Refused(
                f"`ctx.state` after the partition `{name}` cannot be stored: {err}",
                "keep numbers, arrays and frames in it: it is pickled for the next partition and the next run",
            ) from None

    def without_lookback(self, table, output, own):
        pa = load_arrow()
        if "date" not in table.column_names:
            return table
        try:
            dates = table["date"].cast(pa.date32(), safe=False)
        except (pa.ArrowException, NotImplementedError) as err:
            raise Refused(f"the column `date` of the output `{output}` is no date: {err}", "return the dates as they were given, or ISO 8601 text") from None
        # A missing date is refused by the engine.
        is_own = pa.compute.fill_null(pa.compute.greater_equal(dates, pa.scalar(own[0])), True)
        kept = table.filter(is_own)
        self.dropped += len(table) - len(kept)
        return kept

    def before(self, parts, k, symbol):
        """The rows of the lookback of a symbol in the part k."""
        found, wanted = [], self.lookback
        for part in reversed(parts[:k]):
            if wanted == 0:
                break
            rows = part.rows().get(symbol) if part.may_have(symbol) else None
            if rows is not None:
                found.append(rows.slice(max(0, len(rows) - wanted)))
                wanted -= len(found[-1])
        return found[::-1]

    def part(self, parts, k, state):
        """The table of each output for the part k, and the state after it."""
        part = parts[k]
        if self.by == "partition" and not self.lookback:
            return self.once(part.table(), part.name, own=part.dates, state=state)
        if self.lookback and part.dates is None:
            raise Refused(f"`{part.name}` is not the name of a partition by date, and has no lookback", "leave `lookback` out")
        rows = {symbol: concat([*self.before(parts, k, symbol), own]) for symbol, own in part.rows().items()}
        if self.by == "partition":
            return self.once(concat(list(rows.values())), part.name, own=part.dates, state=state)
        states = pickle.loads(state) if state is not None else {}
        made = []
        for symbol, table in rows.items():
            tables, states[symbol] = self.once(table, part.name, symbol, part.dates, states.get(symbol))
            made.append(tables)
        tables = {name: joined([tables[name] for tables in made], name) for name in made[0]} if made else {}
        return tables, pickle.dumps(states, protocol=5) if self.state else None


def partitioned(mark, request):
    """The input that the function is called by symbols or partitions of."""
    inputs = request["inputs"]
    of = mark["of"]
    data_sets = [name for name, port in inputs.items() if len(port["artifacts"]) == 1 and is_data_set(port["artifacts"][0])]
    if of is None and len(data_sets) == 1:
        of = data_sets[0]
    if of not in data_sets:
        known = ", ".join(f"`{name}`" for name in data_sets) or "none"
        raise Refused(
            f"the input of the {mark['by']}s is not named" if of is None else f"`{of}` is no input with partitions",
            f'the data sets of this stage are {known}: `@stage(by="{mark["by"]}", of="NAME")`',
        )
    files = [name for name, output in request["outputs"].items() if output["type"] is None]
    if files:
        raise Refused(
            f"the output `{files[0]}` is a file, and a function by {mark['by']} has data sets only",
            f"declare its type: `outputs: {{ {files[0]}: features }}`",
        )
    return of


# The exit status of a check that found nothing to compare.
UNCHECKED = 3


def checked_apart():
    """Runs the check in an interpreter of its own, so that nothing of it is left in the modules of the function."""
    sys.stdout.flush()
    status = subprocess.call([sys.executable, "-B", str(pathlib.Path(__file__).with_name("driver.py")), sys.argv[1], "check"])
    if status < 0:
        os.kill(os.getpid(), -status)
    if status not in (0, UNCHECKED):
        # The error is written.
        os._exit(status)
    return status == 0


def by_parts(function, mark, request, ctx, is_check):
    of = partitioned(mark, request)
    calls = Calls(function, mark, request, ctx, of)
    way = {"of": of, **{name: mark[name] for name in ("by", "lookback", "state")}}
    files = request["inputs"][of]["artifacts"][0]["files"]
    parts = [Part(file["name"].removesuffix(".parquet"), lambda columns=None, file=file: read_tables([file], columns)) for file in files]
    # By date, and by symbol within: the order of the states.
    parts.sort(key=lambda part: (part.name.rpartition("/")[2], part.name))
    if is_check:
        return check(calls, parts, request["check"])
    is_checked = request["check"] is None or calls.has_whole_symbols or checked_apart()
    pathlib.Path(request["report"]).write_text(json.dumps({**way, "checked": is_checked}))
    known = request["known"]["parts"] if request["known"] and request["known"]["way"] == way else None
    if calls.has_whole_symbols:
        units, tables_of = whole_symbols(calls, parts)
    else:
        units, tables_of = [part.name for part in parts], lambda i, state: calls.part(parts, i, state)
    computed, state = [], None
    for i, name in enumerate(units):
        if known is not None and known[i]["known"]:
            state = known[i]["state"] and pathlib.Path(known[i]["state"])
            continue
        computed.append(name)
        ctx.progress(len(computed), len(units), name)
        if isinstance(state, pathlib.Path):
            state = state.read_bytes()
        tables, state = tables_of(i, state)
        for output, table in tables.items():
            write_table(table, pathlib.Path(request["outputs"][output]["path"]) / f"{i:06}.parquet")
        if mark["state"]:
            path = pathlib.Path(request["states"]) / f"{i:06}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(state)
        if not calls.has_whole_symbols:
            for part in parts[: max(0, i - HELD) if calls.lookback else i + 1]:
                part.forget()
    if calls.dropped:
        print(f"dropped {calls.dropped:,} rows of the result that lie in the lookback", flush=True)
    shown = ", ".join(computed[:20]) + (f" and {len(computed) - 20} more" if len(computed) > 20 else "")
    what = "symbols" if calls.has_whole_symbols else "partitions"
    print(f"computed {len(computed)} of {len(units)} {what}{': ' if computed else ''}{shown}", flush=True)


def whole_symbols(calls, parts):
    """The symbols, and a function that calls with all rows of the symbol i."""
    parts_of = {}
    for part in parts:
        for symbol in part.symbols():
            parts_of.setdefault(symbol, []).append(part)
    symbols = sorted(parts_of)
    left = {}
    for part in (part for symbol in symbols for part in parts_of[symbol]):
        left[part.name] = left.get(part.name, 0) + 1

    def tables_of(i, _):
        symbol = symbols[i]
        table = concat([part.rows()[symbol] for part in parts_of[symbol]])
        for part in parts_of[symbol]:
            left[part.name] -= 1
            if left[part.name] == 0:
                part.forget()
        return calls.once(table, symbol, symbol)

    return symbols, tables_of
