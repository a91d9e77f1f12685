"""The notebooks, run as a reader would run them: from the first cell to the last."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from prose import expressions, unsaid, wrong

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=() if file.stem == "your-own" else pytest.mark.long)
        for file in NOTEBOOKS
    ],
)
def test_a_notebook_runs_and_shows_tables_and_pictures(file, tmp_path):
    notebook = nbformat.read(file, as_version=4)
    said = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    asked = "".join(f"float({one}), " for one in expressions(said))
    asked = f"import json; print(json.dumps([{asked}]))"
    notebook.cells.append(nbformat.v4.new_code_cell(asked))
    metadata = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", resources=metadata).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not any(output.get("name") == "stderr" for output in outputs)
    kinds = {kind for output in outputs for kind in output.get("data", ())}
    pictured = '<img src="data:image/png;base64,'
    cards = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert "image/png" in kinds or any(pictured in card for card in cards)
    assert wrong(said, json.loads(outputs.pop().text)) == []
    printed = "\n".join(str(output.get("text") or output.get("data")) for output in outputs)
    assert unsaid(said, printed) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_stored_without_outputs_under_a_heading(file):
    notebook = nbformat.read(file, as_version=4)
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)
