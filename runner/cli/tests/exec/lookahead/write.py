"""Writers of binary formats, with the standard library alone."""

import csv
import gzip
import struct

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def npy(values, descr="<f8", code="<d"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (descr, len(values))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = b"".join(value if descr[1] == "S" else struct.pack(code, value) for value in values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(n):
    return varint(n << 1)


def record(*fields):
    out, last = b"", 0
    for i, kind, value in fields:
        out += bytes([i - last << 4 | kind]) + value
        last = i
    return out + b"\0"


def binary(data):
    return varint(len(data)) + data


def many(kind, items):
    return bytes([len(items) << 4 | kind]) + b"".join(items)


def snappy(data):
    """Literals alone."""
    parts = (data[i : i + 60] for i in range(0, len(data), 60))
    return varint(len(data)) + b"".join(bytes([len(part) - 1 << 2]) + part for part in parts)


def parquet(path, codec, texts, floats):
    """Required columns of texts and of floats, a page each."""
    code, pack = {"snappy": (1, snappy), "gzip": (2, gzip.compress)}[codec]
    body, chunks, schema = b"PAR1", [], []
    count = len(next(iter({**texts, **floats}.values())))
    for name, cells in {**texts, **floats}.items():
        kind = 6 if name in texts else 5
        if kind == 6:
            data = b"".join(struct.pack("<I", len(cell)) + cell.encode() for cell in cells)
        else:
            data = b"".join(struct.pack("<d", cell) for cell in cells)
        packed = pack(data)
        levels = record((1, I32, number(count)), (2, I32, number(0)), (3, I32, number(3)), (4, I32, number(3)))
        page = record((1, I32, number(0)), (2, I32, number(len(data))), (3, I32, number(len(packed))), (5, STRUCT, levels))
        at = len(body)
        body += page + packed
        meta = record(
            (1, I32, number(kind)),
            (2, LIST, many(I32, [number(0)])),
            (3, LIST, many(BINARY, [binary(name.encode())])),
            (4, I32, number(code)),
            (5, I64, number(count)),
            (6, I64, number(len(page) + len(data))),
            (7, I64, number(len(page) + len(packed))),
            (9, I64, number(at)),
        )
        chunks.append(record((2, I64, number(at)), (3, STRUCT, meta)))
        text = [(6, I32, number(0))] if kind == 6 else []
        schema.append(record((1, I32, number(kind)), (3, I32, number(0)), (4, BINARY, binary(name.encode())), *text))
    root = record((4, BINARY, binary(b"schema")), (5, I32, number(len(schema))))
    group = record((1, LIST, many(STRUCT, chunks)), (2, I64, number(len(body))), (3, I64, number(count)))
    footer = record(
        (1, I32, number(1)),
        (2, LIST, many(STRUCT, [root, *schema])),
        (3, I64, number(count)),
        (4, LIST, many(STRUCT, [group])),
    )
    with open(path, "wb") as file:
        file.write(body + footer + struct.pack("<I", len(footer)) + b"PAR1")


def matrix(path):
    """The rows of a matrix of float64 in C order."""
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    shape = eval(data[10:start].decode())["shape"]
    cells = struct.unpack("<%dd" % (shape[0] * shape[1]), data[start : start + 8 * shape[0] * shape[1]])
    return [cells[i : i + shape[1]] for i in range(0, len(cells), shape[1])]
