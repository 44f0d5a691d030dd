"""Pages are read on GitHub, too, where a link leads to a file of the repository. The site leads to its own pages.

- A link to ``../examples/plot_….py`` leads to that example of the gallery, one to ``../examples/README.rst`` to the
  gallery, one to ``../CHANGELOG.md`` or ``../SECURITY.md`` to the page that includes it.
- The name of a source file in the text, such as ``core/likelihoods/exact_hinge.py``, leads to that file: each file
  that is named becomes a page, so that a formula's code is one step from its derivation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bayesvm"
INSTEAD = [
    (re.compile(r"\]\(\.\./examples/(plot_\w+)\.py\)"), r"](gallery/\1.rst)"),
    (re.compile(r"\]\(\.\./examples/README\.rst\)"), r"](gallery/index.rst)"),
    (re.compile(r"\]\(\.\./CHANGELOG\.md\)"), r"](changelog.md)"),
    (re.compile(r"\]\(\.\./SECURITY\.md\)"), r"](security.md)"),
]
NAME = re.compile(r"(?:\w+/)*\w+\.py")


def lead_to_pages(_app: Sphinx, _docname: str, source: list[str]) -> None:
    """Before a page is parsed."""
    for there, here in INSTEAD:
        source[0] = there.sub(here, source[0])


class SourceLinks(SphinxPostTransform):
    """Names of source files become links to their pages."""

    default_priority = 400

    def run(self, **kwargs: Any) -> None:
        """On one page."""
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext()
            within_link = isinstance(node.parent, nodes.reference)
            if within_link or not NAME.fullmatch(name) or not (PACKAGE / name).is_file():
                continue
            self.app.source_pages.add(name)
            uri = relative_uri(self.app.builder.get_target_uri(self.env.docname), _page(name) + ".html")
            link = nodes.reference("", "", internal=True, refuri=uri)
            node.replace_self(link)
            link += node


def _page(name: str) -> str:
    return f"source/{name.removesuffix('.py')}"


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The files that were named, highlighted."""
    for name in sorted(app.source_pages):
        code = app.builder.highlighter.highlight_block((PACKAGE / name).read_text(), "python", linenos=False)
        title = f"src/bayesvm/{name}"
        yield _page(name), {"title": title, "body": f"<h1>{title}</h1>\n{code}"}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls it."""
    app.source_pages = set()
    app.connect("source-read", lead_to_pages)
    app.connect("html-collect-pages", source_pages)
    app.add_post_transform(SourceLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
