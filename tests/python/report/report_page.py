"""What tests of the report share: files of a run directory, and the page as a browser would act on
it."""

import json
import os
import re
from html.parser import HTMLParser

from nsimplex.report import write_report


class Page(HTMLParser):
    """Collects what a browser with a wide screen would act on: charts for phones are left out."""

    VOID = {"meta", "br", "link", "img", "use", "path"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.words, self.references = [], [], [], []
        self.narrow = None  # how many tags were open where a chart for phones begins
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if self.narrow is None and "narrow" in (dict(attributes).get("class") or "").split():
            self.narrow = len(self.stack)
        self._act(tag, attributes)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self._act(tag, attributes)

    def _act(self, tag, attributes):
        self.references += [v for k, v in attributes if k in ("src", "href", "xlink:href")]
        if self.narrow is None:
            self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.stack.pop() == tag
            if len(self.stack) == self.narrow:
                self.narrow = None

    def handle_data(self, data):
        if self.narrow is None:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1e9, 1e9))  # pages say when a run was written, to the minute


_SENTENCE = re.compile(r'<p class="see">See [^<]+\.</p>$')


def charts_of(text):
    """The charts of a page, as wide screens show them. Each has a sentence above it that says what
    to see."""
    parts = text.split('<div class="scroll wide">')
    assert all(_SENTENCE.search(before) for before in parts[:-1])
    return [after.split("</svg>")[0] for after in parts[1:]]


def read(directory):
    text = write_report(directory).read_text()
    page = Page(text)
    assert page.stack == []
    charts_of(text)
    return text, page
