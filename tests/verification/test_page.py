"""The page of findings: every check and every mistake on it, figures beside it, the same bytes each time."""

from pathlib import Path

from amdp.verification import Effort
from amdp.verification.page import MISTAKES, write
from amdp.verification.runs import chosen, verify


def test_the_page_tells_what_was_found(tmp_path: Path) -> None:
    done = list(verify(chosen(["nestedness", "hedge-inequality", "strong-stability-fails"]), Effort.QUICK, 1))
    page, *figures = write(done, Effort.QUICK, tmp_path / "verified.md")
    text = page.read_text(encoding="utf-8")
    for result in done:
        assert f"## {result.check.name}" in text
        assert result.finding.text in text
    assert all(f"| {name} |" in text for name in MISTAKES)
    assert "a chance of at most 1e-06" in text
    assert "|  |" not in text  # every mistake is rejected by somebody
    assert len(figures) == 2
    for file in figures:
        assert f"figures/{file.name}" in text
        assert file.read_text(encoding="utf-8").startswith("<?xml")
    before = [file.read_bytes() for file in (page, *figures)]
    write(done, Effort.QUICK, page)
    assert [file.read_bytes() for file in (page, *figures)] == before
