"""The check that a function gives the same for parts of its rows as for the whole."""

import bisect
import datetime
import time

from driver_tables import Part, Refused, concat, joined, load_arrow, plain

# The columns that name a row, in the order of the rows.
KEYS = ("symbol", "date", "snapshot", "instant", "expiry", "root", "strike", "call", "contract", "kind", "tenor_years")

# The symbols of the sample, and the rows from which on its first partitions are left out.
SYMBOLS = 3
ROWS = 100_000

# A value may differ by so much of itself, or of the column's mean magnitude. Running sums, as those of pandas' `rolling`, carry rounding errors of rows that
# have left the window: the values of a window depend in their last digits on where the sum began.
TOLERANCE = {"double": 1e-9, "float": 1e-6}


def check(calls, parts, mode):
    """Calls the function with all rows of some symbols at once, and in parts. Returns whether there was anything to compare.

    The partitions of the sample are those of the data set, without the rows of other symbols; where all rows are of one range of dates, it is cut in the middle.
    """
    started = time.monotonic()
    chosen = sample(parts, mode)
    pieces = pieces_of(parts, chosen, None if mode == "all" else ROWS, calls.lookback)
    if not is_tested(pieces, calls.lookback):
        print(f"check: not yet, no partition has more than {calls.lookback} rows of its symbol before it", flush=True)
        return False
    calls.ctx.is_silent = True
    try:
        whole, made, state = all_at_once(calls, pieces), [], None
        for k in range(len(pieces)):
            tables, state = calls.part(pieces, k, state)
            made.append(tables)
    except Refused as err:
        if err.hint is None:
            err.hint = f"this was the check with the rows of {listed(chosen)} alone: `check: all` takes all symbols, `check: none` leaves it out"
        raise
    rows = []
    for output, table in whole.items():
        if "date" not in table.column_names:
            print(f"check: none of `{output}`, which has no column `date`", flush=True)
            continue
        compare(calls, output, plain(table), joined([tables[output] for tables in made], output))
        rows.append(len(table))
    seconds = time.monotonic() - started
    if rows:
        print(f"check: the whole and {len(pieces)} partitions of {listed(chosen)} give the same {sum(rows):,} rows ({seconds:.2f} s)", flush=True)
    return bool(rows)


def listed(symbols):
    return ", ".join(symbols[:SYMBOLS]) + (f" and {len(symbols) - SYMBOLS} more" if len(symbols) > SYMBOLS else "")


def sample(parts, mode):
    """The symbols to check: all, or the first, the middle and the last of those that several partitions have."""
    count = {}
    for part in parts:
        for symbol in part.symbols():
            count[symbol] = count.get(symbol, 0) + 1
    names = sorted(count)
    if mode == "all":
        return names
    names = [name for name in names if count[name] > 1] or names
    return sorted({names[(len(names) - 1) * i // (SYMBOLS - 1)] for i in range(SYMBOLS)})


def pieces_of(parts, chosen, most, lookback):
    """The partitions with the rows of the chosen symbols alone, the last ones if they have more than `most` rows."""
    pieces = []
    for part in reversed(parts):
        rows = part.rows()
        part.forget()
        rows = {symbol: rows[symbol] for symbol in chosen if symbol in rows}
        if rows:
            pieces.insert(0, Part(part.name, rows=rows, dates=part.dates))
        if most is not None and sum(map(size, pieces)) > most and len({piece.dates for piece in pieces}) > 1 and is_tested(pieces, lookback):
            break
    if len({piece.dates for piece in pieces}) > 1:
        return pieces
    return [half for halves in zip(*map(cut, pieces)) for half in halves if half.rows()]


def size(piece):
    return sum(map(len, piece.rows().values()))


def is_tested(pieces, lookback):
    """Whether a symbol has more rows before one of the pieces than the lookback gives."""
    seen = {}
    for piece in pieces:
        for symbol, rows in piece.rows().items():
            if seen.get(symbol, 0) > lookback:
                return True
            seen[symbol] = seen.get(symbol, 0) + len(rows)
    return False


def cut(piece):
    """The two halves of a partition by date; nothing where it has no two dates."""
    pa = load_arrow()
    rows = piece.rows()
    dates = sorted({date for table in rows.values() if "date" in table.column_names for date in table["date"].to_pylist()})
    if len(dates) < 2 or not isinstance(dates[0], datetime.date):
        return []
    middle = dates[len(dates) // 2]
    at = {symbol: bisect.bisect_left(table["date"].to_pylist(), middle) for symbol, table in rows.items()}
    halves = [{s: t.slice(0, at[s]) for s, t in rows.items() if at[s] > 0}, {s: t.slice(at[s]) for s, t in rows.items() if at[s] < len(t)}]
    ranges = [(dates[0], dates[len(dates) // 2 - 1]), (middle, dates[-1])]
    folder = piece.name.rpartition("/")[0] or piece.name
    return [Part(f"{folder}/{first}_{last}", rows=half, dates=(first, last)) for half, (first, last) in zip(halves, ranges)]


def all_at_once(calls, pieces):
    """The table of each output for all rows of the pieces: by symbol, or together."""
    rows = {}
    for piece in pieces:
        for symbol, table in piece.rows().items():
            rows.setdefault(symbol, []).append(table)
    rows = {symbol: concat(rows[symbol]) for symbol in sorted(rows)}
    known = [piece.dates for piece in pieces if piece.dates]
    own = (min(known)[0], max(last for _, last in known)) if known else None
    name = pieces[0].name if own is None else f"{min(rows)}..{max(rows)}/{own[0]}_{own[1]}"
    if calls.by == "partition":
        return calls.once(concat(list(rows.values())), name, own=own)[0]
    made = [calls.once(table, name, symbol, own)[0] for symbol, table in rows.items()]
    return {output: joined([tables[output] for tables in made], output) for output in made[0]}


def compare(calls, output, whole, parts):
    """Fails at the first row that the two tables do not have in common."""
    if whole.column_names != parts.column_names:
        refuse(calls, f"the whole gives `{output}` the columns {', '.join(whole.column_names)}, and a part {', '.join(parts.column_names)}")
    keys = [name for name in KEYS if name in whole.column_names]
    whole, parts = (table.sort_by([(name, "ascending") for name in keys]) for table in (whole, parts))
    if whole.equals(parts):
        return
    left, right = (list(zip(*(table[name].to_pylist() for name in keys))) for table in (whole, parts))
    row = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    values = [name for name in whole.column_names if name not in keys]
    found = None
    for name in values:
        a, b = whole[name].to_pylist(), parts[name].to_pylist()
        at = first_difference(a, b, row, TOLERANCE.get(str(whole.schema.field(name).type), 0.0))
        if at is not None and (found is None or at < found[0]):
            found = (at, name, a[at], b[at])
    if found is not None:
        at, name, a, b = found
        refuse(calls, f"`{name}` of {shown(keys, left[at])} is {a} on the whole, and {b} by part")
    if len(left) != len(right) or row < len(left):
        is_missing = row >= len(right) or row < len(left) and [str(value) for value in left[row]] < [str(value) for value in right[row]]
        key, where = (left[row], ("there on the whole", "missing by part")) if is_missing else (right[row], ("missing on the whole", "there by part"))
        refuse(calls, f"the row of `{output}` of {shown(keys, key)} is {where[0]}, and {where[1]}")


def first_difference(a, b, count, tolerance):
    magnitudes = [abs(value) for value in a if isinstance(value, float) and abs(value) < float("inf")]
    least = sum(magnitudes) / len(magnitudes) if magnitudes else 0.0
    for i in range(count):
        x, y = a[i], b[i]
        if x == y or x is None and y is None or x != x and y != y:
            continue
        is_near = isinstance(x, float) and isinstance(y, float) and abs(x - y) <= tolerance * max(abs(x), abs(y), least) < float("inf")
        if not is_near:
            return i
    return None


def shown(keys, key):
    named = dict(zip(keys, key))
    text = " on ".join(str(named.pop(name)) for name in ("symbol", "date") if name in named)
    return text + "".join(f", {name} {value}" for name, value in named.items() if value is not None)


def refuse(calls, difference):
    if calls.by == "partition":
        remedy = (
            '`@stage(by="symbol")` calls it with the rows of each symbol; `lookback=N` gives the N rows of each symbol before those of the partition; '
            "a function of all symbols and dates at once is called so without `@stage`"
        )
    else:
        remedy = '`lookback=N` gives the N rows of the symbol before those of the partition; `@stage(by="symbol")` alone gives all rows of the symbol'
    if calls.lookback:
        remedy = f"`lookback={calls.lookback}` is not enough, or not the matter: {remedy}"
    raise Refused(f"`{calls.call}` gives other results in parts than for all rows at once: {difference}", f"{remedy}; `check: none` where the difference is meant")
