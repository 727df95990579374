"""What the site has beyond the pages of this folder: the examples, the reference, the project's own files.

MkDocs calls these functions: https://www.mkdocs.org/user-guide/configuration/#hooks. Pages are made in memory, so that
nothing is written twice and new modules and examples appear by themselves.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command

from amdp.cli import app

ROOT = Path(__file__).parent.parent
PROJECT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
HIDDEN = {"__init__", "__main__", "cli"}  # modules without a page of the reference
COMMANDS = "reference/commands.md"
UNLISTED_ROOMS = {"kernels", "commands"}
ROOMS = ("", "model", "oracles", "algorithms", "game", "losses", "instances", "experiments", "report", "verification")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation grows by what there is."""
    assert config.nav is not None
    listed = {page for section in config.nav for page in _pages(section)}
    explained = next(section["Explanation"] for section in config.nav if "Explanation" in section)
    for page in sorted(path.name for path in (ROOT / "docs").glob("*.md")):
        if page not in listed:  # a page that nobody put in its place yet
            explained.append(page)
    config.nav.append({"Examples": [{_title(path): f"examples/{path.stem}.md"} for path in _examples()]})
    config.nav.append({"Reference": _reference()})
    config.nav.append({"Project": [{"Contributing": "contributing.md"}, {"Changelog": "changelog.md"}]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages for examples, modules, and files of the project."""
    made = {f"examples/{path.stem}.md": _example(path) for path in _examples()}
    made |= {_page_of(path): f"::: {_module(path)}\n" for path in _modules()}
    made |= {page: (ROOT / name).read_text(encoding="utf-8") for name, page in PROJECT.items()}
    made[COMMANDS] = _commands()
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository become links of the site."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"\]\((?:\.\./)?examples/(\w+)(?:\.py|\.ipynb)?/?\)", rf"]({up}examples/\1.md)", markdown)
    markdown = re.sub(r"\]\((?:\.\./)?docs/", f"]({up}", markdown)
    for name, target in PROJECT.items():
        markdown = markdown.replace(f"](../{name})", f"]({up}{target})")
    return markdown


def _pages(section: Any) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(section, str):
        return [section]
    inner = section.values() if isinstance(section, dict) else section
    return [page for part in inner for page in _pages(part)]


def _examples() -> list[Path]:
    found = [path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb", ".toml")]
    return sorted([*found, ROOT / "examples" / "own_oracle"], key=lambda path: path.name)


def _title(path: Path) -> str:
    """`07_road_network.py` -> `07 Road network`."""
    number, name = re.match(r"(\d\d_)?(.*)", path.stem).groups(default="")  # type: ignore[union-attr]
    return number.replace("_", " ") + name.replace("_", " ").capitalize()


def _example(path: Path) -> str:
    if path.is_dir():
        return _package(path)
    if path.suffix == ".ipynb":
        return _notebook(path)
    source = path.read_text(encoding="utf-8")
    head = f"# {_title(path)}\n\n"
    if path.suffix == ".py":
        head += f"{ast.get_docstring(ast.parse(source))}\n\n"
    return f'{head}```{path.suffix[1:].replace("py", "python")} title="examples/{path.name}"\n{source}```\n'


def _package(folder: Path) -> str:
    """All sources of a package, one after the other."""
    parts = [(folder / "README.md").read_text(encoding="utf-8")]
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".toml") and path.stat().st_size:
            language = "python" if path.suffix == ".py" else "toml"
            title = path.relative_to(ROOT).as_posix()
            parts.append(f'```{language} title="{title}"\n{path.read_text(encoding="utf-8")}```')
    return "\n\n".join(parts)


def _notebook(path: Path) -> str:
    """Text, code, and what it printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text'])}```")
            if "image/png" in output.get("data", {}):
                parts.append(f"![Output](data:image/png;base64,{output['data']['image/png'].strip()})")
    return "\n\n".join(parts)


def _modules() -> list[Path]:
    found = (ROOT / "amdp").rglob("*.py")
    inside = (path for path in found if path.relative_to(ROOT / "amdp").parts[0] not in UNLISTED_ROOMS)
    return sorted(path for path in inside if path.stem not in HIDDEN)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _page_of(path: Path) -> str:
    return f"reference/{path.relative_to(ROOT / 'amdp').with_suffix('.md').as_posix()}"


def _reference() -> list[Any]:
    """Modules by room; those of the front room first."""
    rooms: dict[str, list[Any]] = {room: [] for room in ROOMS}
    for path in _modules():
        inside = path.relative_to(ROOT / "amdp")
        room = inside.parts[0] if len(inside.parts) > 1 else ""
        name = ".".join(inside.with_suffix("").parts[1 if room else 0 :])
        rooms.setdefault(room, []).append({name: _page_of(path)})
    front = rooms.pop("")
    listed = [{room.capitalize(): pages} for room, pages in rooms.items() if pages]
    return [{"Commands": COMMANDS}, {"Front": front}, *listed]


def _commands() -> str:
    """What `--help` says of each command."""
    parts = ["# Commands"]
    for name, later in sorted(get_command(app).commands.items()):  # type: ignore[attr-defined]
        context = later.make_context(name, [], resilient_parsing=True)
        command = context.command
        rows = [_parameter(each, context) for each in command.params]
        table = "\n".join(["| option | meaning | default |", "|---|---|---|", *rows])
        told = re.sub(r"^Example: (.*)$", r"Example: `\1`", command.help or "", flags=re.MULTILINE)
        parts.append(f"## amdp {name}\n\n{told}\n\n{table}")
    return "\n\n".join(parts)


def _parameter(given: Any, context: Any) -> str:
    names = given.opts + given.secondary_opts if given.param_type_name == "option" else [given.name.upper()]
    default = given.get_default(context)
    shown = "" if default is None or default is False or callable(default) or default == () else f"`{default}`"
    told = (getattr(given, "help", None) or "").replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {told} | {shown} |"
