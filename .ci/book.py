"""Checks README.md and the pages of the book in docs/, and prints their figures: words, words a sentence, longest line.

`.ci/book.py [BUILT]`: with the folder of the built book, its links are followed too. Fails on a broken link, a page that is missing in
docs/SUMMARY.md or does not say for whom it is, a line of prose that is too long, or too many words.
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs"
# The pages that the program writes.
WRITTEN = BOOK / "reference"
MAX_WORDS = {"README.md": 900, "book": 28_000}
MAX_WORDS_PER_SENTENCE = 18
MAX_COLUMNS = 120
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
failures = []


def prose(text):
    """The sentences of a page: without blocks of code, tables, headings and pictures; items of lists are sentences."""
    text = FENCE.sub("\n\n", text)
    kept = []
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith(("|", "#", "<", "![")):
            line = ""
        kept.append("\n" + line if re.match(r"([-*] |\d+\. )", line) else line)
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", "\n".join(kept)):
        paragraph = re.sub(r"`[^`]*`", "code", LINK.sub("link", paragraph))
        for sentence in re.split(r"[.!?](?=[\s)*_]|$)", paragraph):
            words = re.findall(r"\w[\w'’.-]*", sentence)
            if words:
                yield len(words)


def slug(heading):
    """The anchor that mdBook and GitHub give a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(page):
    text = FENCE.sub("", page.read_text())
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def check_links(page):
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if WRITTEN in file.parents and not WRITTEN.exists():
            continue
        if not file.exists():
            failures.append(f"{page.relative_to(ROOT)}: the link {target} leads nowhere")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            failures.append(f"{page.relative_to(ROOT)}: the page of the link {target} has no such heading")


def check_lines(page):
    text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), page.read_text())
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COLUMNS and not line.lstrip().startswith(("|", "[", "<", "![")):
            failures.append(f"{page.relative_to(ROOT)}:{number}: {len(line)} columns, at most {MAX_COLUMNS}")


def check_mentions():
    """The pages that code, pipelines and messages name exist."""
    kinds = ["*.rs", "*.py", "*.yaml", "*.toml", "*.md", "*.js"]
    files = subprocess.run(["git", "ls-files", *kinds], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.split():
        file = ROOT / name
        if file == pathlib.Path(__file__) or name == "CHANGELOG.md" or not file.exists():
            continue
        for mention in set(re.findall(r"\bdocs/[\w/-]+\.(?:md|py|ipynb|yaml)", file.read_text())):
            if not (ROOT / mention).exists() and "docs/reference/" not in mention:
                failures.append(f"{name}: names {mention}, which does not exist")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]


def check_built(folder):
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        pages[file.resolve()] = parsed = Links()
        parsed.feed(file.read_text())
    count = 0
    for file, parsed in pages.items():
        # These hold the pages again, or are shown where a page is missing.
        if file.name in ("print.html", "404.html", "toc.html"):
            continue
        for link in parsed.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            count += 1
            target = (file.parent / urllib.parse.unquote(url.path)).resolve() if url.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                failures.append(f"{file.relative_to(folder)}: the link {link} leads nowhere")
            elif url.fragment and target in pages and urllib.parse.unquote(url.fragment) not in pages[target].ids:
                failures.append(f"{file.relative_to(folder)}: the page of the link {link} has no such place")
    print(f"links of the built book: {count} in {len(pages)} pages")


summary = (BOOK / "SUMMARY.md").read_text()
listed = {(BOOK / link).resolve() for link in LINK.findall(summary)}
pages = [page for page in sorted(BOOK.rglob("*.md")) if WRITTEN not in page.parents and page.name != "SUMMARY.md"]
total, sentences = 0, []
for page in [ROOT / "README.md", *pages]:
    name, text = str(page.relative_to(ROOT)), page.read_text()
    words, lengths = len(text.split()), list(prose(text))
    mean = sum(lengths) / max(len(lengths), 1)
    print(f"{name:44} {words:6} words, {mean:4.1f} a sentence, longest line {max(map(len, text.splitlines()))}")
    check_lines(page)
    check_links(page)
    if page in pages:
        total += words
        sentences += lengths
        if page not in listed:
            failures.append(f"{name} is not in docs/SUMMARY.md")
        if not re.match(r"# .+\n\n\*For ", text):
            failures.append(f"{name} does not begin with a heading and a line `*For …*` that says for whom it is")
    elif words > MAX_WORDS["README.md"]:
        failures.append(f"{name} has {words} words, at most {MAX_WORDS['README.md']}")
mean = sum(sentences) / max(len(sentences), 1)
print(f"the book: {total} words in {len(pages)} pages, {mean:.1f} words a sentence")
if total > MAX_WORDS["book"]:
    failures.append(f"the book has {total} words, at most {MAX_WORDS['book']}")
if mean > MAX_WORDS_PER_SENTENCE:
    failures.append(f"the book has {mean:.1f} words a sentence, at most {MAX_WORDS_PER_SENTENCE}")
check_mentions()
if len(sys.argv) > 1:
    check_built(pathlib.Path(sys.argv[1]).resolve())
print(*failures, sep="\n", end="\n" if failures else "")
sys.exit(bool(failures))
