"""The layout: imports without cycles, private modules, folders of a readable size, a true map."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "nescio"
MODULES = {
    ".".join(("nescio", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
COMPILED = {"_core", "_cuda", "_emulated"}
MAX_FILES = 25

# Private modules that other packages of nescio import. An entry is removed once it is unused.
SHARED = {
    # The service names older versions of tables, and limits them.
    "nescio.pir._history",
    # The commands print and plot more than the public interface offers.
    "nescio.audit._report.advice",
    "nescio.audit._report.charts",
    "nescio.audit._simulate.sweep",
    "nescio.ot._party",
    "nescio.quant._plot",
    # The benchmarks time steps of an answer or a product by themselves.
    "nescio.mpc._activation",
    "nescio.mpc._plans.costs",
    "nescio.mpc._encoding",
    "nescio.mpc._layout",
    "nescio.mpc._maps",
    "nescio.mpc._offline",
    "nescio.mpc._online",
    "nescio.mpc._store",
    "nescio.mpc._tables",
    "nescio.pir._device_table",
    "nescio.pir._replica",
    "nescio.quant._activations",
    # The service moves the messages of nescio.pir; the commands and the demonstration start it.
    "nescio.pir._bins",
    "nescio.pir._change",
    "nescio.pir._checksums",
    "nescio.pir._durable",
    "nescio.pir._hash_shape",
    "nescio.pir._hash_tree",
    "nescio.pir._params",
    "nescio.pir._keyed",
    "nescio.pir._rows",
    "nescio.pir._state",
    "nescio.service._cluster",
    "nescio.service._cluster._admin",
    "nescio.service._cluster._open",
    "nescio.service._cluster._restart",
    "nescio.pir._sharded",
    "nescio.pir._sharded._head",
    "nescio.pir._sharded._shard",
    "nescio.pir._sharded._sum",
    "nescio.pir._stored",
    "nescio.pir._vacancy",
    "nescio.pir._vacant_rows",
    "nescio.pir._versions",
    "nescio.pir._tops",
    "nescio.pir._wire",
    "nescio.pir._layout_kind",
    "nescio.service._build",
    "nescio.service._client._attempt",
    "nescio.service._served",
    "nescio.service._connection",
    "nescio.service._data",
    "nescio.service._exchange",
    "nescio.service._access",
    "nescio.service._observe",
    "nescio.service._observe._peer",
    "nescio.service._operation",
    "nescio.service._reloaded",
    "nescio.service._serve",
    "nescio.service._spawn",
    # Silent OT names the kinds of the frames that it sends.
    "nescio.net._frame",
    # The PyTorch half of nescio.quant is loaded only where PyTorch is installed.
    "nescio.quant.torch._convert",
    "nescio.quant.torch._models",
}


def statements(node):
    """Yields all nodes but those under `if TYPE_CHECKING:`, which are not executed."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        yield child
        yield from statements(child)


def imports(name):
    """Yields the modules that a module imports, also within functions."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                if f"{base}.{alias.name}" in MODULES:
                    yield f"{base}.{alias.name}"
                elif base in MODULES and alias.name not in COMPILED:
                    yield base


GRAPH = {name: sorted(set(imports(name)) - {name}) for name in MODULES}


def cycles(graph):
    """Returns the sets of modules that import each other (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_cycles_are_found():
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [["a", "b", "c"]]


def test_no_modules_import_each_other():
    assert cycles(GRAPH) == []


def is_private(module):
    return any(part.startswith("_") for part in module.split(".")[1:])


def owner(module):
    """Returns the package whose modules may import a private module."""
    parts = module.split(".")
    first = next(i for i, part in enumerate(parts) if i and part.startswith("_"))
    return ".".join(parts[:first])


CROSSINGS = {
    (name, other)
    for name, others in GRAPH.items()
    for other in others
    if is_private(other) and not f"{name}.".startswith(f"{owner(other)}.")
}


def test_private_modules_are_imported_in_their_package_or_listed():
    assert sorted(pair for pair in CROSSINGS if pair[1] not in SHARED) == []


def test_every_listed_module_is_still_shared():
    assert {other for _, other in CROSSINGS} >= SHARED


def test_no_folder_is_too_large():
    folders = [
        folder
        for top in ("core", "src", "benchmarks")
        for folder in [ROOT / top, *(ROOT / top).rglob("*")]
        if folder.is_dir() and folder.name != "__pycache__"
    ]
    sizes = {
        str(folder.relative_to(ROOT)): sum(
            path.is_file() and path.suffix != ".so" for path in folder.iterdir()
        )
        for folder in folders
    }
    assert {folder: size for folder, size in sizes.items() if size > MAX_FILES} == {}


# ---- docs/architecture.md ------------------------------------------------------------------------

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
TREE = ARCHITECTURE.split("```\n", 2)[1]


def tree_paths():
    """Yields the paths that the tree of docs/architecture.md names."""
    folders = []
    for line in TREE.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.match(r"\s*(\S+(?:  ?[\w./]+)*?)(?:\s{2,}|$)", line)[1].split()
        for name in names:
            folders[depth:] = [name]
            yield "/".join(part.strip("/") for part in folders)


def test_the_tree_of_the_architecture_exists():
    missing = [path for path in tree_paths() if not (ROOT / path).exists()]
    assert missing == []


def test_the_tree_of_the_architecture_is_whole():
    named = set(tree_paths())
    expected = {
        str(path.relative_to(ROOT))
        for top in (ROOT / "core", PACKAGE)
        for path in top.iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    assert expected - named == set()


def test_the_paths_of_the_architecture_exist():
    """Paths in backquotes are relative to the repository, to core or to the package."""
    bases = [ROOT, ROOT / "core", PACKAGE, ROOT / "tests"]
    paths = re.findall(r"`([\w./]+/[\w.]+\.(?:py|h|cc|cu|md|json))`", ARCHITECTURE)
    assert paths
    assert [p for p in paths if not any((base / p).exists() for base in bases)] == []


def listed_tests(variable, words):
    """Lists the files of tests with `words`, and those of them that a Makefile list lacks."""
    makefile = (ROOT / "Makefile").read_text()
    rule = re.search(rf"^{variable} := ((?:.*\\\n)*.*)", makefile, re.MULTILINE)[1]
    named = [name.split("::")[0] for name in re.findall(r"\w+/[\w/.]+|\b\w+\b", rule)]
    tests = ROOT / "tests"
    found = [path for path in sorted(tests.rglob("test_*.py")) if words in path.read_text()]
    found = [path.relative_to(tests) for path in found if path != Path(__file__)]
    return found, [path for path in found if not any(path.is_relative_to(n) for n in named)]


def test_every_test_that_needs_pytorch_runs_with_it():
    """`make compat` names what `make test` skips without PyTorch."""
    found, missing = listed_tests("COMPAT_TESTS", 'importorskip("torch")')
    assert len(found) > 10
    assert missing == []


def test_every_test_under_load_runs_alone():
    found, missing = listed_tests("LOAD_TESTS", "pytest.mark.load")
    assert len(found) > 5
    assert missing == []
