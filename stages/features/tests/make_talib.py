"""Writes talib.csv: bars and what TA-Lib makes of them. Made with TA-Lib 0.8.1 (`pip install TA-Lib==0.8.2 numpy`): python make_talib.py > talib.csv

The bars are ordinary, then flat for 25 bars (some without volume), then they jump to three times the price and to a hundredth of it."""

import numpy as np
import talib as ta

random = np.random.default_rng(11)
n = 140
close = 50 * np.exp(np.cumsum(0.015 * random.standard_normal(n)))
open_ = np.concatenate([[50], close[:-1]]) * (1 + 0.005 * random.standard_normal(n))
high = np.maximum(open_, close) * (1 + 0.008 * random.random(n))
low = np.minimum(open_, close) * (1 - 0.008 * random.random(n))
volume = np.round(1e5 * np.exp(0.5 * random.standard_normal(n)))
for prices in (open_, high, low, close):
    prices[100:] *= 3
    prices[120:] *= 0.01
    prices[50:75] = close[50]
volume[60:70] = 0
open_, high, low, close = (np.round(x, 6) for x in (open_, high, low, close))

columns = {"open": open_, "high": high, "low": low, "close": close, "volume": volume}


def add(names, values):
    for name, column in zip(names.split(), values if isinstance(values, (tuple, list)) else [values]):
        columns[name] = column


h, l, c, v = high, low, close, volume
for p in (5, 14):
    for name in ("sma", "ema", "wma", "dema", "tema", "trima", "kama", "trix", "rsi", "cmo", "mom", "roc", "rocp", "linearreg",
                 "linearreg_slope", "linearreg_angle", "linearreg_intercept", "tsf", "max", "min", "midpoint"):
        add(f"{name}_{p}", getattr(ta, name.upper())(c, p))
    for name in ("atr", "natr", "dx", "adx", "adxr", "cci", "willr"):
        add(f"{name}_{p}", getattr(ta, name.upper())(h, l, c, p))
    add(f"plus_di_{p} minus_di_{p}", (ta.PLUS_DI(h, l, c, p), ta.MINUS_DI(h, l, c, p)))
    add(f"plus_dm_{p} minus_dm_{p}", (ta.PLUS_DM(h, l, p), ta.MINUS_DM(h, l, p)))
    add(f"stddev_{p} var_{p}", (ta.STDDEV(c, p, 1), ta.VAR(c, p, 1)))
    add(f"midprice_{p}", ta.MIDPRICE(h, l, p))
    add(f"mfi_{p}", ta.MFI(h, l, c, v, p))
    add(f"beta_{p}_high_low", ta.BETA(h, l, p))
    add(f"correl_{p}_high_low correl_{p}_close_volume", (ta.CORREL(h, l, p), ta.CORREL(c, v, p)))
    down, up = ta.AROON(h, l, p)
    add(f"aroon_up_{p} aroon_down_{p} aroon_oscillator_{p}", (up, down, ta.AROONOSC(h, l, p)))
    add(f"bollinger_upper_{p} bollinger_middle_{p} bollinger_lower_{p}", ta.BBANDS(c, p, 2, 2))
add("t3_5", ta.T3(c, 5, 0.7))
add("macd_12_26_9 macd_signal_12_26_9 macd_histogram_12_26_9", ta.MACD(c, 12, 26, 9))
add("apo_5_14 ppo_5_14", (ta.APO(c, 5, 14, 1), ta.PPO(c, 5, 14, 1)))
add("apo_5_14_simple ppo_5_14_simple", (ta.APO(c, 5, 14, 0), ta.PPO(c, 5, 14, 0)))
add("trange sar sar_0.05_0.4", (ta.TRANGE(h, l, c), ta.SAR(h, l), ta.SAR(h, l, 0.05, 0.4)))
add("stoch_k_5_3_3 stoch_d_5_3_3", ta.STOCH(h, l, c, 5, 3, 0, 3, 0))
add("stochf_k_14_3 stochf_d_14_3", ta.STOCHF(h, l, c, 14, 3, 0))
add("stochrsi_k_14_5_3 stochrsi_d_14_5_3", ta.STOCHRSI(c, 14, 5, 3, 0))
add("ultosc_7_14_28", ta.ULTOSC(h, l, c, 7, 14, 28))
add("bop obv ad adosc_3_10", (ta.BOP(open_, h, l, c), ta.OBV(c, v), ta.AD(h, l, c, v), ta.ADOSC(h, l, c, v, 3, 10)))

bars = ("open", "high", "low", "close", "volume")
level = {name: np.nanmax(np.abs(column)) for name, column in columns.items()}
# Beside the bars, as many decimals as tell 1e-11 of a column's level.
decimals = {name: max(0, 11 - int(np.floor(np.log10(level[name] or 1)))) for name in columns}
print(",".join(columns))
for i in range(n):
    # Of the values, the first forty rows (where they begin) and every fourth.
    cells = []
    for name, column in columns.items():
        shown = name in bars or i < 40 or i % 4 == 3
        cell = "-" if not shown else "" if np.isnan(column[i]) else f"{column[i]:.{6 if name in bars else decimals[name]}f}"
        cells.append(cell.rstrip("0").rstrip(".") if "." in cell else cell)
    print(",".join(cells))
