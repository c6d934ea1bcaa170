"""Times calls of TA-Lib. The arguments are the number of symbols and of bars.

The standard input begins with open, high, low, close and volume of each symbol as f64. Each line after them is an expression over o, h, l, c and v; the answer
is the nanoseconds that it takes for each symbol."""

import sys
import time

import numpy as np
import talib

symbols, bars = map(int, sys.argv[1:])
panel = np.frombuffer(sys.stdin.buffer.read(8 * 5 * symbols * bars)).reshape(symbols, 5, bars)
panel = [[column.copy() for column in columns] for columns in panel]
print("TA-Lib", talib.__version__, flush=True)
for line in sys.stdin.buffer:
    call = eval(f"lambda o, h, l, c, v: ({line.decode().strip()})", vars(talib))
    spent = []
    for columns in panel:
        start = time.perf_counter_ns()
        call(*columns)
        spent.append(time.perf_counter_ns() - start)
    print(*spent, flush=True)
