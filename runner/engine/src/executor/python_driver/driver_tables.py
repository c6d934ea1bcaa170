"""Tables: those that a function is given, and those that it returns."""

import datetime
import pathlib
import urllib.parse


class Refused(Exception):
    """An error of the stage that is not an exception of its function."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.message, self.hint = message, hint


def load_arrow():
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as err:
        raise Refused(f"cannot import pyarrow: {err}", "install pyarrow in the environment of the stage") from None
    return pyarrow


def read_tables(files, columns=None):
    """The rows of Parquet files, mapped into memory and decoded, as one table."""
    pa = load_arrow()
    return concat([pa.parquet.ParquetFile(file["path"], memory_map=True).read(columns) for file in files])


def concat(tables, options="default"):
    """One table of several, whose columns may differ by name; with the options `permissive` also by type."""
    pa = load_arrow()
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options=options)
    except TypeError:  # before pyarrow 14
        return pa.concat_tables(tables, promote=True)


def joined(tables, output):
    """The results of several calls as one table."""
    pa = load_arrow()
    first = tables[0].column_names
    other = next((table.column_names for table in tables if set(table.column_names) != set(first)), None)
    if other is None:
        try:
            # A column of numbers may be whole in one call and not in another.
            return concat([plain(table).select(first) for table in tables], "permissive")
        except pa.ArrowException as err:
            problem = str(err)
    else:
        problem = f"{', '.join(first)}, and {', '.join(other)}"
    raise Refused(f"the results `{output}` of two calls have different columns: {problem}", "return the same columns of the same types from each call")


def plain(table):
    """The table without dictionaries, such as those of pandas' categories."""
    pa = load_arrow()
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def is_data_set(artifact):
    files = artifact["files"]
    return artifact["type"] != "file" and bool(files) and all(file["name"].endswith(".parquet") for file in files)


def read_input(port):
    def read(artifact):
        if is_data_set(artifact):
            return read_tables(artifact["files"])
        return pathlib.Path(artifact["path"])

    values = [read(artifact) for artifact in port["artifacts"]]
    if port["points"]:
        return dict(zip(port["points"], values))
    return values[0] if len(values) == 1 else values


def to_table(value, what):
    """A table of Arrow, of pandas, of polars, or of whatever has Arrow's stream interface."""
    pa = load_arrow()
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    try:
        if type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == "DataFrame":
            named = any(name is not None for name in value.index.names)
            return pa.Table.from_pandas(value, preserve_index=named).replace_schema_metadata(None)
        if hasattr(value, "__arrow_c_stream__"):
            return pa.table(value)
        if type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "to_arrow"):
            return value.to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as err:
        raise Refused(f"{what} has columns that are no columns of Arrow: {err}", "convert them to numbers, text or dates") from None
    raise Refused(
        f"{what} is of the type `{type(value).__qualname__}`, which is no table",
        "return a `pyarrow.Table`, or a frame of pandas or polars",
    )


def write_table(table, path):
    pa = load_arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pa.parquet.write_table(table, path, compression="lz4")
    except (pa.ArrowException, OSError, ValueError) as err:
        raise Refused(f"the table cannot be written as Parquet: {err}", "convert its columns to numbers, text or dates") from None


class Part:
    """A partition: its name, its first and last date if the name has them, and its rows."""

    def __init__(self, name, read=None, rows=None, dates=None):
        self.name, self._read, self._rows = name, read, rows
        self.dates = dates or dates_of(name)

    def table(self):
        return self._read() if self._rows is None else concat(list(self._rows.values()))

    def rows(self):
        """The rows of each symbol, by symbol."""
        if self._rows is None:
            self._rows = by_symbol(self._read())
        return self._rows

    def symbols(self):
        return list(by_symbol(self._read(["symbol"]))) if self._rows is None else list(self._rows)

    def may_have(self, symbol):
        """False if the name says that the partition has no rows of the symbol."""
        first, dots, last = self.name.rpartition("/")[0].partition("..")
        first, last = (urllib.parse.unquote(text) for text in (first, last if dots else first))
        return not first or first <= symbol <= last

    def forget(self):
        if self._read is not None:
            self._rows = None


def dates_of(name):
    """The first and the last date of a partition: those of `AAPL..MSFT/2019-01-01_2019-12-31`."""
    try:
        first, last = (datetime.date.fromisoformat(text) for text in name.rpartition("/")[2].split("_"))
    except ValueError:
        return None
    return first, last


def by_symbol(table):
    """The rows of each symbol, in the order of the symbols; a table without the column has one, `all`."""
    pa = load_arrow()
    if "symbol" not in table.column_names:
        return {"all": table}
    symbols = table["symbol"]
    if pa.types.is_dictionary(symbols.type):
        symbols = symbols.cast(symbols.type.value_type)
    count = len(symbols)
    if count and not pa.compute.all(pa.compute.less_equal(symbols.slice(0, count - 1), symbols.slice(1))).as_py():
        order = pa.compute.sort_indices(symbols)
        table, symbols = table.take(order), symbols.take(order)
    rows, start = {}, 0
    for run_of in symbols.value_counts():
        length = run_of["counts"].as_py()
        rows[run_of["values"].as_py()] = table.slice(start, length)
        start += length
    return rows
