# SPDX-License-Identifier: Apache-2.0
"""Reads an SVG on standard input with a strict XML parser and checks that it stands alone, says what it is, and keeps what it draws inside
its own frame. Prints how many rectangles of each class there are: "B 3, F 8, ...", classes sorted, letters of both cases together."""
import sys
import xml.etree.ElementTree as tree
from collections import Counter

SVG = "{http://www.w3.org/2000/svg}"
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == SVG + "svg" and root.get("role") == "img"
ids = {element.get("id"): element for element in root.iter() if element.get("id")}
for name in root.get("aria-labelledby").split():
    assert ids[name].text.strip(), name
_, _, width, height = map(float, root.get("viewBox").split())

for element in root.iter():
    assert element.tag.startswith(SVG), element.tag
    assert element.tag[len(SVG):] in {"svg", "title", "desc", "style", "rect", "line", "text"}, element.tag
    for name, value in element.attrib.items():
        assert "href" not in name and "url(" not in value and not name.startswith("on")
assert "url(" not in ids["title"].text and "@import" not in root.find(SVG + "style").text

counted = Counter()
for rect in root.iter(SVG + "rect"):
    if rect.get("class") == "page":
        continue
    x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
    assert x >= 0 and y >= 0 and x + w <= width + 0.5 and y + h <= height + 0.5, rect.attrib
    if rect.find(SVG + "title") is not None:
        assert rect.find(SVG + "title").text
        counted[rect.get("class").split()[0].upper()] += 1
for text in root.iter(SVG + "text"):
    assert text.text and 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
print(", ".join(f"{name} {counted[name]}" for name in sorted(counted)))
