"""The configuration file of `nescio serve`: all its options by their long names, as TOML.

    party = 0
    port = 8443
    [[table]]
    file = "embeddings.npy"
    name = "words"

The options of the parser are the names that a file may have, so an option needs no entry here.
Relative paths in a file start at its folder. Options of the command line win.
"""

import argparse
import difflib
import json
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..._arrays import check_file, shown
from ...errors import ArgumentError, FileError
from .options import as_folder

_NOT_IN_FILES = frozenset({"help", "config", "print-config", "admin-token"})
_MAX_BYTES = 1 << 20
_NAME = "[NAME=]"  # begins the metavar of an option that is about one table
_WIDTH = 96
_PATHS = (Path, as_folder)  # types of options that are relative to the file


def accept_config(parser: argparse.ArgumentParser) -> None:
    """Lets a parser of `nescio serve` take options from a file, and print them as one."""
    add = parser.add_argument_group("configuration").add_argument
    add(
        "--config",
        type=Path,
        metavar="FILE.toml",
        help="file with any of these options, by their long names; options of the command line "
        "win, and its tables replace those of the file",
    )
    add(
        "--print-config",
        action="store_true",
        help="print all options as a file for --config, with their present values, and stop",
    )
    plain = parser.parse_known_args

    def parse(
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401 - argparse's own
    ) -> tuple[argparse.Namespace, list[str]]:
        finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        finder.add_argument("--config", type=Path)
        path = finder.parse_known_args(args)[0].config
        given = {} if path is None else read_config(path, parser)
        parser.set_defaults(**given)
        arguments, rest = plain(args, namespace)
        _prefer_command_line(arguments, given)
        if path is not None and arguments.version == given.get("version"):
            arguments.version_now = lambda: read_config(path, parser).get("version")
        if path is not None:
            arguments.config_changes = lambda: _changes(given, read_config(path, parser))
        if not arguments.print_config:
            _check_complete(parser, arguments)
        return arguments, rest

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Lists the options that a file has changed since, but for the version of its tables."""
    names = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    return sorted(name.replace("_", "-") for name in names - {"version"})


def _prefer_command_line(arguments: argparse.Namespace, given: Mapping[str, Any]) -> None:
    """Removes what the file says of tables, and in lists, if the command line says other things.

    argparse appends the values of the command line to those of the file.
    """
    replaced = "tables" in given and arguments.tables is not given["tables"]
    for name, value in given.items():
        found = getattr(arguments, name)
        longer = name != "tables" and isinstance(value, list) and len(found) > len(value)
        if longer or (replaced and isinstance(value, list) and name in ("name", "keys", "layout")):
            setattr(arguments, name, found[len(value) :])


def _check_complete(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    missing = ["TABLE.npy"] if not arguments.tables else []
    missing += ["--party"] if arguments.party is None else []
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")


def read_config(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Reads a file; returns the values of the parser's options by their attributes.

    Raises FileError for a file that is not TOML, ArgumentError for unknown names and wrong types.
    """
    check_file(path, "a configuration file")
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise FileError(f"{path}: found more than {_MAX_BYTES} bytes, expected options")
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"{path} cannot be read as TOML: {error}") from error
    options = dict(_options(parser))
    tables = found.pop("table", [])
    values: dict[str, Any] = {}
    for name, value in found.items():
        if name not in options or _is_about_tables(options[name]):
            known = [key for key, action in options.items() if not _is_about_tables(action)]
            raise _unknown(path, name, [*known, "[[table]]"])
        values[options[name].dest] = _value(path, name, value, options[name])
    if tables:
        values.update(_tables(path, tables, options))
    return values


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yields the options of a parser that a file may have, by their long names."""
    for action in parser._actions:
        for text in action.option_strings:
            name = text.removeprefix("--")
            if text.startswith("--") and name not in _NOT_IN_FILES:
                yield name, action


def _is_about_tables(action: argparse.Action) -> bool:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return action.dest == "name" or metavar.startswith(_NAME)


def _tables(
    path: Path, tables: object, options: Mapping[str, argparse.Action]
) -> dict[str, list[Any]]:
    """Converts the entries [[table]] to the options that name tables."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ArgumentError(f"{path}: table: found one value, expected entries [[table]]")
    about = {n: action for n, action in options.items() if _is_about_tables(action)}
    values: dict[str, list[Any]] = {"tables": [], **{a.dest: [] for a in about.values()}}
    for table in tables:
        for name in table:
            if name != "file" and name not in about:
                raise _unknown(path, name, ["file", *about], " in [[table]]")
        file = _text(path, "file", table.get("file"), "the path of a table")
        values["tables"].append(_relative(path, "file", file))
        own = _text(path, "name", table.get("name", Path(file).stem), "a name for clients")
        values["name"].append(own)
        for name, action in about.items():
            if name != "name" and name in table:
                values[action.dest].append(f"{own}={_of_table(path, name, table[name], action)}")
    return values


def _of_table(path: Path, name: str, value: object, action: argparse.Action) -> object:
    if str(action.metavar).removeprefix(_NAME) == "FILE":
        return _relative(path, name, _text(path, name, value, "the path of a file"))
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(path, name, value, "a text or a number", action)
    return value


def _text(path: Path, name: str, value: object, expected: str) -> str:
    if not isinstance(value, str) or not value:
        found = "nothing" if value is None else shown(value)
        raise ArgumentError(f"{path}: {name} in [[table]]: found {found}, expected {expected}")
    return value


def _relative(path: Path, name: str, file: str) -> Path:
    """Returns a path that starts at the folder of the file. Raises ArgumentError for `~`."""
    if not file or "\0" in file:
        raise ArgumentError(f"{path}: {name}: found {shown(file)}, expected the path of a file")
    if file.startswith("~"):
        raise ArgumentError(
            f"{path}: {name}: found {shown(file)}, expected a path without '~', which only shells "
            f"replace: write the folder in full, or {shown('./' + file)} for a name with '~'"
        )
    return path.parent / file


def _value(path: Path, name: str, value: object, action: argparse.Action) -> object:
    """Checks a value as argparse does, but for its type, which the file has."""
    if isinstance(action.default, list):  # repeated on the command line
        if not isinstance(value, list):
            raise _wrong(path, name, value, 'a list, such as ["one", "two"]', action)
        return [_single(path, name, one, action) for one in value]
    return _single(path, name, value, action)


def _single(path: Path, name: str, value: object, action: argparse.Action) -> object:
    kind: Any = action.type
    plain = not isinstance(value, bool)
    if action.nargs == 0:
        accepted, expected = isinstance(value, bool), "true or false"
    elif kind is int:
        accepted, expected = plain and isinstance(value, int), "a whole number"
    elif kind is float:
        accepted, expected = plain and isinstance(value, int | float), "a number"
    elif kind is None or kind in _PATHS:
        accepted, expected = isinstance(value, str), "a text in quotes"
    else:
        accepted, expected = plain and isinstance(value, str | int), "a text in quotes, or a number"
    if isinstance(value, str) and ("\0" in value or (name == "version" and not value)):
        accepted, expected = False, "a text without null characters that is not empty"
    if action.choices is not None and value not in action.choices:
        accepted, expected = False, f"one of {', '.join(map(str, action.choices))}"
    if not accepted:
        raise _wrong(path, name, value, expected, action)
    if kind in _PATHS:
        return _relative(path, name, str(value))
    if kind in (None, int) or action.nargs == 0:
        return value
    return _converted(path, name, value, kind)


def _converted(path: Path, name: str, value: object, kind: Callable[[Any], Any]) -> object:
    if kind is float:
        return float(str(value))
    try:
        return kind(str(value))
    except (argparse.ArgumentTypeError, ArgumentError) as error:
        raise ArgumentError(f"{path}: {name}: {error}") from error


def _unknown(path: Path, name: str, known: Sequence[str], where: str = "") -> ArgumentError:
    near = difflib.get_close_matches(name, known, 1)
    advice = f"{near[0]!r}" if near else f"one of {', '.join(known)}"
    return ArgumentError(f"{path}: found the unknown name {shown(name)}{where}, expected {advice}")


def _wrong(
    path: Path, name: str, value: object, expected: str, action: argparse.Action
) -> ArgumentError:
    about = (action.help or "").partition(";")[0].partition(" (default")[0]
    return ArgumentError(f"{path}: {name}: found {shown(value)}, expected {expected}: {about}")


def config_text(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    """Returns all options, with their values, as the text of a file."""
    lines = ["# Options of nescio serve: nescio serve --config THIS.toml", ""]
    tables = []
    for name, action in _options(parser):
        if _is_about_tables(action):
            tables.append((name, action))
            continue
        lines += _comment(action)
        value = getattr(arguments, action.dest)
        if value is None:
            lines += [f"# {name} = {'0' if action.dest == 'party' else _toml('')}", ""]
        else:
            lines += [f"{name} = {_toml(value)}", ""]
    return "\n".join([*lines, *_table_lines(arguments, tables)])


def _comment(action: argparse.Action) -> list[str]:
    text = (action.help or "") % {**vars(action), "prog": "nescio serve"}
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _table_lines(
    arguments: argparse.Namespace, about: Sequence[tuple[str, argparse.Action]]
) -> list[str]:
    lines = ["# One entry for each table.", ""]
    names = arguments.name or [path.stem for path in arguments.tables]
    for path, own in zip(arguments.tables, names, strict=False):
        lines += ["[[table]]", f"file = {_toml(path)}", f"name = {_toml(own)}"]
        for name, action in about:
            for text in getattr(arguments, action.dest) if name != "name" else []:
                table, equals, value = text.partition("=")
                if not equals or table == own:
                    lines.append(f"{name} = {_toml(value if equals else text)}")
        lines.append("")
    if not arguments.tables:
        lines += ["# [[table]]", '# file = "embeddings.npy"', '# name = "words"', ""]
    return lines


def _toml(value: object) -> str:
    """Writes a value as TOML, whose texts, numbers and lists are those of JSON here."""
    if isinstance(value, list):
        return json.dumps([str(one) for one in value])
    if isinstance(value, Path):
        return json.dumps(str(value.absolute()))
    return json.dumps(value)
