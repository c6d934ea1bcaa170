"""Prints the lines of Rust that are longer than 110 columns, and fails if there are any.

Text in another language may be longer: raw strings, lines within a string of several lines; and in
documentation tables, long addresses, and drawings and formulas between fences.
"""

import pathlib
import re
import subprocess
import sys

WIDTH = 110
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^\\'\n])'", re.S)
FENCE = re.compile(r"\s*//[/!] ```")
TABLE = re.compile(r"\s*//[/!] (\||.*https?://\S{60})")


def without_texts(token):
    """A token without the text of raw strings and of strings of several lines, but with as many lines."""
    text = token.group()
    is_text = text.startswith(("r", "br")) or (text.startswith('"') and "\n" in text)
    return '"' + "\n" * text.count("\n") + '"' if is_text else text


def long_lines(source):
    is_fenced = False
    for number, line in enumerate(TOKEN.sub(without_texts, source).split("\n"), 1):
        is_fenced ^= bool(FENCE.match(line))
        if len(line) > WIDTH and not is_fenced and not TABLE.match(line):
            yield number, len(line)


files = subprocess.run(["git", "ls-files", "*.rs"], capture_output=True, text=True, check=True).stdout.split()
found = [
    f"{file}:{number}: {width} columns"
    for file in files
    if pathlib.Path(file).exists()
    for number, width in long_lines(pathlib.Path(file).read_text())
]
print(*found, sep="\n", end="\n" if found else "")
sys.exit(bool(found))
