"""Writes the tables of exchanges from the package exchange_calendars; README.md says when and how to run it."""

import collections
import pathlib
import sys
import warnings

import exchange_calendars
import pandas as pd

FIRST, LAST = 1990, 2027
HERE = pathlib.Path(__file__).parent

# The calendars of the program; XNYS is what its test holds our rules of the United States against.
CODES = """XNYS XTKS XLON XPAR XAMS XBRU XLIS XDUB XETR XMIL XMAD XSWX XSTO XCSE XHEL XOSL XICE XWBO XWAR XIST
XTAE XSAU XJSE XSES XBOM XHKG XSHG XTAI XKRX XASX XNZE XKLS XBKK XIDX XTSE XMEX BVMF CMES IEPA""".split()

# Calendars whose days equal those of another.
EQUAL = {"XFRA": "XETR"}

# What the package has otherwise than the exchange: days that were closed, and (`+`) days with a session.
OURS = {
    # All-day closures for a typhoon and for rain.
    "XHKG": "2023-09-01 2023-09-08",
    # Evening sessions of Diwali (Muhurat), and special sessions on weekends (budgets, tests of the second site).
    "XBOM": """+1999-11-07 +2003-10-25 +2006-10-21 +2009-10-17 +2013-11-03 +2014-10-23 +2015-02-28 +2015-11-11
        +2016-10-30 +2017-10-19 +2018-11-07 +2019-10-27 +2020-02-01 +2020-11-14 +2021-11-04 +2022-10-24
        +2023-11-12 +2024-03-02 +2024-05-18 +2024-11-01 +2025-10-21 +2026-02-01 +2026-11-08""",
}


def load(code):
    """The calendar of an exchange, and the first and the last year that the package knows wholly."""
    factory = exchange_calendars.calendar_utils.global_calendar_dispatcher._calendar_factories[code]
    first, last = factory.bound_min(), factory.bound_max()
    first = max(FIRST, first.year + (first.dayofyear > 1)) if first is not None else FIRST
    last = min(LAST, last.year) if last is not None else LAST
    if code == "XTAE":
        # Checked by its authors from 2019 on; the early closes of all Sundays or Fridays are left out.
        first = 2019
        closes = factory.special_closes.fget
        factory.special_closes = property(lambda self: closes(self)[:1])
    return factory(start=pd.Timestamp(first, 1, 1), end=pd.Timestamp(last, 12, 31)), first, last


def table(code, theirs, first, last):
    """The lines of the exchange's table, and the time zone, opening, close and usual early close."""
    sessions = set(theirs.sessions)
    local = lambda day: theirs.schedule.loc[day, "close"].tz_convert(theirs.tz).strftime("%H:%M")
    early = {day: local(day) for day in theirs.early_closes}
    for word in OURS.get(code, "").split():
        day = pd.Timestamp(word.removeprefix("+"))
        assert (day in sessions) != word.startswith("+"), f"{code} {word} is in the package by now"
        (sessions.add if word.startswith("+") else sessions.remove)(day)
        early.pop(day, None)
    usual = collections.Counter(early.values()).most_common(1)
    usual = usual[0][0] if usual else "-"
    lines = []
    for year in range(first, last + 1):
        days = pd.date_range(pd.Timestamp(year, 1, 1), pd.Timestamp(year, 12, 31))
        sundays = sum(day in sessions for day in days if day.weekday() == 6)
        weekend = (4, 5) if sundays > 26 else (5, 6)
        words = ["sun-thu"] if sundays > 26 else []
        for day in days:
            name = day.strftime("%m-%d")
            if (day in sessions) == (day.weekday() in weekend):
                words.append(name if day not in sessions else "+" + name)
            if day in early:
                words.append("<" + name + ("" if early[day] == usual else "@" + early[day]))
        lines.append(" ".join([str(year)] + words))
    opens, closes = [times[-1][1].strftime("%H:%M") for times in (theirs.open_times, theirs.close_times)]
    return lines, [str(theirs.tz), opens, closes, usual]


def digests(code, theirs, first, last):
    """The sessions of each year as the package has them: their number, and an FNV-1a hash of them."""
    local = lambda day: theirs.schedule.loc[day, "close"].tz_convert(theirs.tz).strftime("@%H:%M")
    early = set(theirs.early_closes)
    for year in range(first, last + 1):
        days = [day for day in theirs.sessions if day.year == year]
        text = "".join(f"{day:%m-%d}{local(day) if day in early else ''} " for day in days)
        digest = 0xCBF29CE484222325
        for byte in text.encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
        yield f"{code} {year} {len(days)} {digest:016x}"


def main():
    warnings.filterwarnings("ignore")
    lines = [f"# exchange_calendars {exchange_calendars.__version__}, see README.md"]
    for code in CODES:
        theirs, first, last = load(code)
        rows, hours = table(code, theirs, first, last)
        (HERE / f"{code.lower()}.txt").write_text("\n".join(rows) + "\n")
        lines += digests(code, theirs, first, last)
        print(code, *hours, first, last, file=sys.stderr)
    for code, other in EQUAL.items():
        assert list(load(code)[0].sessions) == list(load(other)[0].sessions), code
    (HERE / "digests.txt").write_text("\n".join(lines) + "\n")


main()
