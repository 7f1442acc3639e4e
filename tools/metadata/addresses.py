"""The addresses in the package's metadata: [project.urls], and the links of README.md.

Both follow from `repository-code` in CITATION.cff, which tools/release writes. A package index
shows README.md without the files around it, so links to these files become links into the
repository. Where no repository is known they become plain text.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Code, or a link or a picture of Markdown. The text of a link may hold code and [brackets].
LINK_OR_CODE = re.compile(
    r"(?P<code>^```.*?^```$|`[^`\n]*`)"
    r"|(?P<picture>!?)\[(?P<text>(?:`[^`\n]*`|\[[^\[\]]*\]|[^\[\]`])*)\]\((?P<target>[^()\s]+)\)",
    re.DOTALL | re.MULTILINE,
)

__all__ = ["LINK_OR_CODE", "Provider", "absolute_links", "repository", "repository_in", "urls"]


def repository_in(citation):
    """The address that the text of a CITATION.cff gives, or nothing."""
    found = re.search(r"^repository-code: \"?([^\s\"]+)\"?$", citation, re.MULTILINE)
    return found[1] if found else ""


def repository():
    """The address that this project's CITATION.cff gives, or nothing."""
    return repository_in((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def urls(repository, version):
    """[project.urls]. The pages below a repository are those of GitHub."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/v{version}/docs/README.md",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{repository}/security/advisories/new",
    }


def absolute_links(markdown, repository, version):
    """A page whose links to files of this project lead into its repository, or are plain text."""

    def absolute(found):
        target = found["target"]
        if found["code"] or target.startswith("#") or "://" in target:
            return found[0]
        if not repository:
            return found["text"]
        view = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({repository}/{view}/v{version}/{target})"

    return LINK_OR_CODE.sub(absolute, markdown)


class Provider:
    """What scikit-build-core asks for `readme` and `urls`, after `version` is known."""

    def dynamic_metadata(self, settings, project):
        address = repository()
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        text = absolute_links(page, address, project["version"])
        return {
            "readme": {"text": text, "content-type": "text/markdown"},
            "urls": urls(address, project["version"]),
        }
