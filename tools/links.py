#!/usr/bin/env python3
"""Usage: tools/links.py SITE [SKIPPED FOLDER ...]

Checks each link of the pages of a site: the file that it leads to is there, and has the anchor.
Pages in the skipped folders are led to, but their own links are not checked. Prints what is wrong,
and fails then. Addresses elsewhere are counted, not asked.
"""

import functools
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value and (tag, name) != ("link", "canonical"):
                self.links.append(value)


@functools.lru_cache(maxsize=None)
def page(file):
    return Page(file.read_text(errors="replace"))


def main(site, *skipped):
    site = Path(site).resolve()
    elsewhere, checked, wrong = 0, 0, []
    for file in sorted(site.rglob("*.html")):
        if file.relative_to(site).parts[0] in skipped:
            continue
        for link in page(file).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                elsewhere += parts.scheme in ("http", "https")
                continue
            # Only the page of a missing address, which a server shows anywhere, begins at its root.
            folder = site if parts.path.startswith("/") else file.parent
            path = unquote(parts.path).lstrip("/")
            target = (folder / path).resolve() if path else file
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            checked += 1
            if not target.is_file():
                wrong.append(f"{file.relative_to(site)}: {link}: there is no such file")
            elif anchor and target.suffix == ".html" and anchor not in page(target).anchors:
                wrong.append(f"{file.relative_to(site)}: {link}: there is no such anchor")
    print("\n".join(wrong + [f"{checked} links checked, {elsewhere} lead elsewhere"]))
    sys.exit(1 if wrong or not checked else 0)


main(*sys.argv[1:])
