"""Nobody waits for what he does not use: which packages are imported by what."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
import typer

import relaxdp as rx
from relaxdp.cli.main import COMMANDS, app

LIGHT = {"typer", "cryptography", "numpy"}
"""What the first lines of a program may wait for."""
HEAVY = {
    "cryptography", "duckdb", "matplotlib", "msgspec", "narwhals", "numpy", "pandas", "polars", "pyarrow",
    "rich", "scipy", "sqlalchemy", "starlette", "typer", "uvicorn",
}  # fmt: skip


def imported(code: str) -> set[str]:
    """Return which of the heavy packages are there after some code."""
    shown = f"{code}\nprint(*{HEAVY!r} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{shown}"], capture_output=True, check=True, text=True
    ).stdout  # fmt: skip
    return set(done.splitlines()[-1].split())


KEYED = {"cryptography", "numpy"}
LISTS = KEYED | {"pyarrow"}


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import relaxdp; dir(relaxdp)", set()),
        ("from relaxdp.theory import Level, relaxation_law", set()),
        ("from relaxdp import Key", KEYED),
        ("import relaxdp; [getattr(relaxdp, name) for name in relaxdp.__all__]", LISTS),
        ("from relaxdp import Categorical, Key; key = Key.from_bytes(bytes(32)); "
         "Categorical(['a', 'b']).release(['b'], [1], key=key, epsilon=1, name='r', column='a')", LISTS),
    ],
)  # fmt: skip
def test_a_name_brings_what_it_needs(code: str, allowed: set[str]) -> None:
    assert imported(code) <= allowed


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["no-such-command"]])
def test_a_look_at_the_commands_imports_none_of_them(words: list[str]) -> None:
    code = f"from relaxdp.cli.main import main; sys.argv[1:] = {words!r}\ntry: main()\nexcept SystemExit: pass"
    assert imported(code) <= LIGHT


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_small_release_waits_for_nothing_that_only_estimates_need(tmp_path: Path, ending: str) -> None:
    table, vault = tmp_path / f"in.{ending}", tmp_path / "study.vault"
    rows = pa.table({"person": range(1000), "answer": ["yes", "no"] * 500})
    (pa_parquet.write_table if ending == "parquet" else pa_csv.write_csv)(rows, table)
    rx.Vault.create(vault, budget=4)
    said = f"release {table} {tmp_path}/out.{ending} --id person --column answer=yes,no --epsilon 2 --vault {vault}"
    code = f"from relaxdp.cli.main import main; sys.argv[1:] = {said.split()!r}; main()"
    assert not imported(code) & {"duckdb", "narwhals", "rich", "scipy", "sqlalchemy"}
    assert (tmp_path / f"out.{ending}").exists()


def test_a_service_starts_without_what_only_estimates_need() -> None:
    code = "import relaxdp.cli.serve, relaxdp.collector.component, relaxdp.market.component"
    assert not imported(code) & {"duckdb", "matplotlib", "scipy"}


def test_the_library_imports_no_part_of_a_server() -> None:
    code = "import relaxdp; [getattr(relaxdp, name) for name in relaxdp.__all__]\n"
    code += "import relaxdp.audit, relaxdp.cli.release, relaxdp.cli.vault, relaxdp.cli.estimate, relaxdp.cli.rappor\n"
    code += "print(*{name.split('.')[1] for name in sys.modules if name.startswith('relaxdp.')})"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, check=True, text=True)
    layers = {*done.stdout.split()}
    assert {"errors", "tables", "rappor", "audit"} <= layers
    assert not layers & {"server_errors", "storage", "service", "device", "collector", "market"}


def test_the_list_of_commands_says_what_each_says_itself() -> None:
    commands = typer.main.get_group(app).commands
    assert list(commands) == list(COMMANDS)
    for name, (_, _, sentence) in COMMANDS.items():
        assert (commands[name].help or "").partition("\n\n")[0] == sentence, name


def test_type_checkers_and_python_find_the_same_names() -> None:
    tree = ast.parse(Path(rx.__file__).with_suffix(".pyi").read_text("utf-8"))
    lines = [line for line in tree.body if isinstance(line, ast.ImportFrom)]
    homes = {name.asname: str(line.module) for line in lines for name in line.names}
    assert sorted(filter(None, homes)) == sorted(rx.__all__)
    assert {*rx.__all__} <= {*dir(rx)}
    for name in rx.__all__:
        assert getattr(rx, name) is getattr(import_module(homes[name]), name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = rx.no_such_name  # type: ignore[attr-defined]


NEEDS_MORE = ("collector.", "ledger.postgres_store", "market.", "service.", "tables.spark")
"""What asks for an extra as soon as it is imported: servers, and what speaks to one database or to Spark."""
EXTRAS = {
    "httptools", "matplotlib", "msgspec", "pandas", "prometheus_client", "psycopg", "pyspark",
    "sklearn", "starlette", "uvicorn", "uvloop",
}  # fmt: skip
WITHOUT_EXTRAS = """
import importlib, pkgutil, sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, NotInstalled())
import relaxdp
for module in pkgutil.walk_packages(relaxdp.__path__, "relaxdp."):
    if not module.name.endswith(("__main__", "relaxdp_kernel")):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            print(module.name.removeprefix("relaxdp."))
"""


def test_after_a_plain_installation_no_command_is_missing() -> None:
    """Nor is the auditor, who audits the market as well: what only a server needs is not asked for."""
    line = [sys.executable, "-c", WITHOUT_EXTRAS, *EXTRAS]
    missing = subprocess.run(line, capture_output=True, check=True, text=True).stdout.split()
    assert "service.run" in missing
    assert [name for name in missing if not name.startswith(NEEDS_MORE)] == []
