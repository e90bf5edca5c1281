#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what is unsound in a page of pipeplan: elements that do not close in order, what would be fetched, an id twice. Nothing: all is well."""
import re
import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "wbr"}
FETCHES = {"src", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.wrong, self.scripts = [], set(), [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("link", "img", "iframe", "object", "embed", "base", "form", "use", "image"):
            self.wrong.append(f"<{tag}>")
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in FETCHES or name.startswith("on"):
                self.wrong.append(f"{tag} {name}")
            if name == "href" and not (tag == "a" and re.match(r"https?://", value or "")):
                self.wrong.append(f"{tag} href {value}")
            if name == "id":
                if value in self.ids:
                    self.wrong.append(f"id {value} twice")
                self.ids.add(value)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> out of order at {self.getpos()}")


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
page = Page()
page.feed(text)
page.close()
if page.open:
    page.wrong.append("open at the end: " + ", ".join(page.open))
if re.search(r"url\(|@import", re.search(r"<style>(.*?)</style>", text, re.S).group(1)):
    page.wrong.append("style fetches")
if page.scripts > 2:
    page.wrong.append(f"{page.scripts} scripts")
print("\n".join(page.wrong), end="")
