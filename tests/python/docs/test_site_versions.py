"""tools/publish_site keeps the pages of every release, and leads readers to the latest."""

import json
import os
import re
import shutil
import subprocess

import pytest

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "x"), ("EMAIL", "x@example.org"))
}


class Project:
    """A repository with the tool, and a site of two pages in place of the project's own."""

    def __init__(self, folder, root, pages):
        self.folder, self.site, self.pages = folder, folder / "build" / "site", pages
        (folder / "tools").mkdir(parents=True)
        shutil.copy(root / "tools" / "publish_site", folder / "tools")
        (folder / ".venv-docs").symlink_to(root / ".venv-docs")
        self.git("init", "--quiet", "--bare", "origin.git")
        self.git("init", "--quiet")
        self.git("remote", "add", "origin", "origin.git")

    def git(self, *words):
        env = {**os.environ, **IDENTITY}
        command = ["git", *words]
        return subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=True
        ).stdout

    def build(self, version):
        """What tools/docs leaves of a version."""
        (self.site / "pages" / "docs").mkdir(parents=True, exist_ok=True)
        (self.site / "pages" / "README.md").write_text(f"# First page of {version}\n")
        (self.site / "pages" / "docs" / "page.md").write_text("# A page\n")
        (self.site / "pages" / "site.css").write_text("")
        own = f"copyright: nsimplex {self.pages.version()}\n"
        text = self.pages.configuration(self.site)
        assert own in text
        (self.site / "mkdocs.yml").write_text(text.replace(own, f"copyright: nsimplex {version}\n"))
        self.git("commit", "--quiet", "--allow-empty", "-m", version)

    def publish(self, *words, **env):
        env = {**os.environ, **IDENTITY, "SITE_URL": "", **env}
        return subprocess.run(
            ["tools/publish_site", *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
        )

    def release(self, version, **env):
        self.build(version)
        self.git("tag", f"v{version}")
        ended = self.publish("--push", **env)
        assert ended.returncode == 0, ended.stderr

    def published(self, path):
        return self.git("--git-dir=origin.git", "show", f"gh-pages:{path}")


@pytest.fixture(scope="module")
def project(root, pages, tmp_path_factory):
    if not (root / ".venv-docs" / "bin" / "mike").exists():
        pytest.skip("tools/docs has not made .venv-docs")
    project = Project(tmp_path_factory.mktemp("site"), root, pages)
    project.release("0.9.0")
    project.release("0.10.0", SITE_URL="https://example.org/nsimplex/")
    # A fresh clone knows the branch only from the server.
    project.git("branch", "-D", "gh-pages")
    project.release("0.9.1")
    return project


def test_every_minor_version_has_its_pages_and_a_patch_replaces_them(project):
    for version, minor in (("0.9.1", "0.9"), ("0.10.0", "0.10")):
        page = project.published(f"{minor}/index.html")
        assert f"First page of {version}" in page and f"nsimplex {version}" in page
    assert "A page" in project.published("0.9/docs/page.html")


def test_latest_is_the_highest_version_and_the_root_leads_to_it(project):
    versions = json.loads(project.published("versions.json"))
    assert [(entry["version"], entry["aliases"]) for entry in versions] == [
        ("0.10", ["latest"]),
        ("0.9", []),
    ]
    assert project.published("latest") == "0.10"  # a symbolic link
    assert 'url=latest/"' in project.published("index.html")


def test_pages_offer_the_versions(project):
    page = project.published("0.9/docs/page.html")
    (settings,) = re.findall(r'<script id="__config"[^>]*>(.*?)</script>', page)
    assert json.loads(settings)["version"]["provider"] == "mike"
    # Readers of an earlier version are led to the first page of the site, and so to the latest.
    assert '<a href="../..">' in page.partition("This page belongs to an earlier version")[2]


def test_pages_ask_for_the_list_of_versions_only_where_there_is_one(project):
    """It is versions.json, which tools/publish_site makes."""
    command = [project.folder / ".venv-docs" / "bin" / "mkdocs", "build", "--quiet"]
    command += ["--config-file", project.site / "mkdocs.yml"]
    subprocess.run(command, env={**os.environ, "SITE_URL": ""}, capture_output=True, check=True)
    page = (project.site / "html" / "docs" / "page.html").read_text()
    (settings,) = re.findall(r'<script id="__config"[^>]*>(.*?)</script>', page)
    assert json.loads(settings)["version"]["provider"] == ""


def test_a_choice_of_a_version_keeps_the_page(project):
    """The theme finds the page by the addresses in sitemap.xml. Their common beginning must be
    one of them."""
    places = re.findall("<loc>(.*?)</loc>", project.published("0.10/sitemap.xml"))
    assert sorted(places) == [
        "https://example.org/nsimplex/0.10/",
        "https://example.org/nsimplex/0.10/docs/page.html",
    ]
    # Without an address there is nothing to find, and the choice leads to the first page.
    assert "<loc>" not in project.published("0.9/sitemap.xml")


def test_no_script_of_a_page_makes_an_address_of_a_relative_one_alone(project):
    assert not re.search(r'new URL\("[^"]*"\)', project.published("0.9/docs/page.html"))


def test_what_is_no_release_is_not_published(project):
    before = project.published("versions.json")
    project.build("0.11.0")
    ended = project.publish("--push")
    assert ended.returncode == 1
    assert ended.stderr == "publish_site: the commit does not have the tag v0.11.0\n"
    (project.site / "mkdocs.yml").rename(project.site / "kept.yml")
    assert project.publish().stderr == "publish_site: tools/docs has built no site\n"
    assert project.publish("--pull").returncode == 2
    assert project.published("versions.json") == before
