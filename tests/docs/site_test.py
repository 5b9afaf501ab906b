"""The site of ./dev docs: of this tree, and of small ones with one fault each."""

import html
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))
import links  # noqa: E402  (behind the path to it)
import site_of_docs  # noqa: E402

HEADER = """// Doors.
#pragma once
namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
/// Hands down `open`.
class door_base {
 public:
  /// Opens it.
  void open();
  void unlock();
};
}  // namespace detail

/// A door, as in `::door` and `"`.
class door : public detail::door_base {
 public:
  door(door&&) noexcept;
  /// Closes it.
  void close();
  void close(int how);
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
"""
PAGE = """# Doors

## To close

The `door`'s way, `::door` and `"`. See [above](doors.md#to-close), [the start](../README.md) and [the licence](../LICENSE).
"""


def text_of(path: Path) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8"))).split())


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()


class SiteOfThisTree(Folder):
    def test_has_the_pages_the_classes_and_a_search(self):
        site = self.folder / "site"
        self.assertEqual(site_of_docs.build(ROOT, site), [])
        self.assertEqual(links.broken(site), [])
        index = "".join(path.read_text() for path in (site / "search").glob("all_*.js"))
        for name in ("fiber", "mutex", "generator", "scope"):
            self.assertIn(f"['{name}',[", index)
        sentence = re.search(r"/// ([^.]+\.)[^\n]*\n(?:///[^\n]*\n)*class \[\[nodiscard\]\] fiber \{",
                             (ROOT / "include/pirn/fiber/fiber.hpp").read_text()).group(1)
        self.assertIn(sentence, text_of(site / "classpirn_1_1fiber.html"))
        self.assertIn("try_lock_until", text_of(site / "classpirn_1_1mutex.html"), "handed down by a class that has no page")
        self.assertEqual(list(site.glob("*detail*")), [], "no page of what is internal")
        for page in (ROOT / "docs").glob("*.md"):
            self.assertTrue((site / f"page-{page.stem}.html").exists(), page)


class SiteOfASmallTree(Folder):
    def build(self, **changed: str) -> list[str]:
        """The findings in a tree of one page and one header, either of which may be another."""
        files = {"README.md": "# Start\n\n[Doors](docs/doors.md)\n", "LICENSE": "None.\n", "CMakeLists.txt": "  VERSION 1.0\n",
                 "docs/doors.md": changed.get("page", PAGE), "include/pirn/door.hpp": changed.get("header", HEADER)}
        for name, text in files.items():
            path = self.folder / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return site_of_docs.build(self.folder / "tree", self.folder / "site")

    def test_finds_nothing_where_all_is_well(self):
        self.assertEqual(self.build(), [])
        door = text_of(self.folder / "site/classpirn_1_1door.html")
        for shown in ("pirn::door", "void open ()", "Opens it.", "void close (int how)", 'as in ::door and "'):
            self.assertIn(shown, door)
        self.assertIn('The door\'s way, ::door and ". See', text_of(self.folder / "site/page-doors.html"))
        page = links.Page((self.folder / "site/page-doors.html").read_text())
        self.assertLessEqual({"page-doors.html#page-doors-to-close", "index.html#page-readme", "./LICENSE"}, set(page.targets))

    def test_finds_a_function_without_a_comment(self):
        found = self.build(header=HEADER.replace("  /// Closes it.\n", ""))
        self.assertTrue(found and "include/pirn/door.hpp:20" in found[0] and "close" in found[0], found)

    def test_finds_a_class_without_a_comment(self):
        found = self.build(header=HEADER.replace('/// A door, as in `::door` and `"`.\n', ""))
        self.assertTrue(any("include/pirn/door.hpp:16: a public type" in line for line in found), found)

    def test_finds_a_page_that_links_to_no_page_or_no_heading(self):
        for wrong in ("windows.md", "doors.md#to-open"):
            with self.subTest(wrong):
                self.assertNotEqual(self.build(page=PAGE.replace("doors.md#to-close", wrong)), [])


class Links(Folder):
    def test_lead_to_files_and_anchors(self):
        (self.folder / "a.html").write_text('<a href="b.html#there"></a><a href="b.html#not"></a><a id="x" href="#x"></a>'
                                            '<img src="c%20d.png"><a href="https://example.org/"></a><a href="e.html"></a>')
        (self.folder / "b.html").write_text('<h2><a name="there"></a></h2>')
        (self.folder / "c d.png").touch()
        self.assertEqual(links.broken(self.folder), ["a.html: no such place: b.html#not", "a.html: no such file: e.html"])


if __name__ == "__main__":
    unittest.main()
