"""The notebooks of examples/ as pages of the site, from the outputs that they hold.

``python docs/notebooks.py`` runs them anew and keeps what is worth keeping: results and pictures, once each, without
progress bars.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "examples"
STYLE = re.compile(r"<style.*?</style>\n?", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every notebook: tutorials/NAME.md."""
    from mkdocs.structure.files import File

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=as_markdown(path)))
    return files


def as_markdown(path: Path) -> str:
    """Text, code and outputs of a notebook."""
    import nbformat

    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts += [f"```python\n{cell.source}\n```", *filter(None, map(_shown, cell.outputs))]
    return "\n\n".join(parts) + "\n"


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/jpeg" in data:
        return f'<img alt="result" src="data:image/jpeg;base64,{data["image/jpeg"].strip()}">'
    if "text/html" in data:
        return f"<div>{STYLE.sub('', data['text/html'])}</div>"
    return f"```text\n{data.get('text/plain', '')}\n```"


def run(path: Path, folder: Path, timeout: int = 300) -> Any:
    """Run a notebook in a folder, where it leaves its files; return it with the outputs that are worth keeping."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
        if cell.cell_type == "code":
            cell.outputs = [_kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def _kept(output: Any) -> Any:
    if "image/jpeg" in output.get("data", {}):
        output.data.pop("image/png", None)  # the same picture, seven times as large
    return output


def main() -> None:
    """Run every notebook and write it back."""
    import nbformat

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(path, Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()
