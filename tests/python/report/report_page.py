"""What tests of the report share: files of a run directory, and the page as a browser would act on
it."""

import json
from html.parser import HTMLParser

from nsimplex.report import write_report


class Page(HTMLParser):
    """Collects what a browser would act on."""

    VOID = {"meta", "br", "link", "img", "use", "path"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.words, self.references = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [v for k, v in attributes if k in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [v for k, v in attributes if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(directory):
    text = write_report(directory).read_text()
    page = Page(text)
    assert page.stack == []
    return text, page
