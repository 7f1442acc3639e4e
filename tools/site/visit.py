#!/usr/bin/env python3
"""Visits every page of the built site: links and files by reading, layout in a headless Chromium.

    tools/site/visit.py [--links] build/site/html      # --links: no browser, only links and files

Every relative link leads to a file and every anchor to a place in it. No page loads anything from
another server. At 1280 and at 390 pixels no page is wider than its window, every picture is drawn
and formulas have a size. Chromium is that of the system (CHROMIUM names another).
"""

import argparse
import http.server
import json
import os
import posixpath
import shutil
import subprocess
import sys
import tempfile
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = 1280, 390

DRIVER = """<!doctype html><title>visit</title><body><script>
const visit = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.onload = () => setTimeout(() => {
    const root = frame.contentDocument, found = [];
    const view = root.documentElement;
    if (view.scrollWidth > width) {
      const wide = [...root.querySelectorAll("article *")]
        .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 1)
        .map(e => e.tagName + " " + e.textContent.trim().slice(0, 60));
      found.push(`is ${view.scrollWidth} pixels wide: ${wide}`);
    }
    if (!root.querySelector("article h1")) found.push("has no heading");
    for (const image of root.images)
      if (image.complete && !image.naturalWidth) found.push(`does not draw ${image.src}`);
    for (const formula of root.querySelectorAll("math"))
      if (!formula.getBoundingClientRect().height) found.push("has a formula without a size");
    frame.remove();
    done(found.map(text => `${page} at ${width}: ${text}`));
  }, 50);
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  const {pages, widths} = await (await fetch("/visit.json")).json();
  let found = [];
  for (const page of pages) for (const width of widths) found.push(...await visit(page, width));
  await fetch("/visited", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""


class Page(HTMLParser):
    """The links, loaded files and ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        load = given.get("src") if tag in ("img", "script", "iframe") else None
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            load = given.get("href")
        if load:
            self.loads.append(load)


def broken_links(site: Path) -> list[str]:
    pages = {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    found = []
    for name, page in pages.items():
        if name == "404.html":  # its links begin at the root of a server
            continue
        found += [f"{name} loads {load}" for load in page.loads if urlsplit(load).netloc]
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            target = name if not parts.path else place
            if not (site / target).exists():
                found.append(f"{name}: {link} leads nowhere")
            elif target in pages and unquote(parts.fragment) not in pages[target].ids | {""}:
                found.append(f"{name}: {link} has no such place")
    return found


def layout_faults(site: Path, chromium: str, minutes: float = 10) -> list[str]:
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    pages = ["/" + name for name in names if name != "404.html"]
    visited: list[str] = []
    done = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(site))

        def log_message(self, *args):
            pass

        def do_GET(self):
            said = {
                "/visit.html": DRIVER,
                "/visit.json": json.dumps({"pages": pages, "widths": WIDTHS}),
            }.get(self.path)
            if said is None:
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(said.encode())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            visited.extend(json.loads(body))
            self.send_response(204)
            self.end_headers()
            done.set()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
        address = f"http://127.0.0.1:{server.server_port}/visit.html"
        command = [chromium, *options.split(), f"--user-data-dir={profile}"]
        command += ["--window-size=1400,1000", "--remote-debugging-port=0", address]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **quiet) as browser:
            if not done.wait(minutes * 60):
                visited.append(f"Chromium did not visit {len(pages)} pages in {minutes} minutes")
            browser.terminate()
    server.shutdown()
    return visited


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--links", action="store_true")
    options = parser.parse_args()
    site = options.site.resolve()
    faults = broken_links(site)
    chromium = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    if options.links:
        pass
    elif chromium:
        faults += layout_faults(site, chromium)
    else:
        print("no Chromium: the layout was not looked at", file=sys.stderr)
    print("\n".join(faults) or f"{len(list(site.rglob('*.html')))} pages: no fault found")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
