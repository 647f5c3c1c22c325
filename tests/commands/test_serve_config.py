"""`nescio serve --config`: options from a file."""

import tomllib

import httpx
import pytest

from commands.conftest import nescio_here, serving, write_words
from nescio.cli import build_parser


@pytest.fixture
def write(tmp_path):
    """Writes a configuration file beside a table; returns its path."""
    write_words(tmp_path)

    def written(text):
        path = tmp_path / "nescio.toml"
        path.write_text(text)
        return path

    return written


def parse(*arguments):
    return build_parser().parse_args(["serve", *map(str, arguments)])


def test_a_file_serves_its_tables(write):
    (write("").parent / "keys.txt").write_text("\n".join(f"word{i}" for i in range(100)))
    path = write(
        'party = 1\nport = 0\nmax-keys = 7\n[[table]]\nfile = "words.npy"\nname = "first"\n'
        '[[table]]\nfile = "words.npy"\nname = "second"\nkeys = "keys.txt"\n'
    )
    with serving("--config", path) as (_, url, lines):
        assert lines[-1].startswith("party 1 serves first, second on ")
        assert httpx.get(f"{url}/v1/tables/first").json()["limits"]["max_keys"] == 7


def test_the_command_line_wins(write):
    path = write(
        'party = 1\nport = 99\nlog = "json"\n[[table]]\nfile = "words.npy"\nname = "first"\n'
    )
    found = parse("--config", path, "--port", 8080, "--party", 0)
    assert (found.port, found.party, found.log) == (8080, 0, "json")
    assert found.name == ["first"]
    found = parse("other.npy", "--config", path, "--name", "other")
    assert [str(table) for table in found.tables] == ["other.npy"]
    assert found.name == ["other"]


def test_a_byte_order_mark_is_accepted(write):
    path = write('\ufeffparty = 0\nmax-journal = 4096\n[[table]]\nfile = "words.npy"\n')
    assert parse("--config", path).max_journal == 4096


def test_the_usage_of_spare():
    assert "[--spare N|P%]" in nescio_here("serve", "--help").stdout


def test_paths_start_at_the_folder_of_the_file(write):
    path = write('party = 0\ntls-cert = "chain.pem"\n[[table]]\nfile = "words.npy"\n')
    found = parse("--config", path)
    assert found.tls_cert == path.parent / "chain.pem"
    assert found.tables == [path.parent / "words.npy"]
    assert found.name == ["words"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 8080", "found the unknown name 'prot', expected 'port'"),
        ("xyz = 1", "found the unknown name 'xyz', expected one of"),
        ('port = "8080"', "port: found '8080', expected a whole number: port to listen on"),
        ("port = 80.5", "port: found 80.5, expected a whole number"),
        ("port = true", "port: found True, expected a whole number"),
        ("metrics = 1", "metrics: found 1, expected true or false: let everyone"),
        ('timeout = "fast"', "timeout: found 'fast', expected a number"),
        ("host = 127", "host: found 127, expected a text in quotes: address to listen on"),
        ("party = 2", "party: found 2, expected one of 0, 1: number of this server"),
        ('log = "xml"', "log: found 'xml', expected one of text, json"),
        ('generator = "rot13"', "generator: found 'rot13', expected one of"),
        ('admin-token = "secret"', "found the unknown name 'admin-token'"),
        ('name = "words"', "found the unknown name 'name'"),
        ('[[table]]\nname = "words"', "file in [[table]]: found nothing, expected the path"),
        ('[[table]]\nfile = "a"\nfiel = 1', "'fiel' in [[table]], expected 'file'"),
        ('[table]\nfile = "a"', "table: found one value, expected entries [[table]]"),
        ("port = ", "cannot be read as TOML"),
        ('data = "a\\u0000b"', "data: found 'a\\x00b', expected a text without null characters"),
        ('data = ""', "data: found '', expected the path"),
        ('version = ""', "version: found '', expected a text"),
        ('data = "~/x"', "data: found '~/x', expected a path without '~'"),
        ('[[table]]\nfile = "~/x"', "file: found '~/x', expected a path without '~'"),
        ("max-journal = -1", "max-journal: found '-1', expected 1024 to"),
        ("max-journal = 0", "max-journal: found '0', expected 1024 to"),
        ("max-journal = 9999999999999999", "expected 1024 to"),
    ],
)
def test_a_file_that_is_refused(write, text, message):
    path = write(text)
    found = nescio_here("serve", "--config", path)
    assert found.returncode == 1
    assert str(path) in found.stderr
    assert message in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_a_file_that_does_not_exist(tmp_path):
    found = nescio_here("serve", "--config", tmp_path / "none.toml")
    assert found.returncode == 1
    assert "none.toml" in found.stderr


def test_a_table_and_a_party_are_needed():
    found = nescio_here("serve")
    assert found.returncode == 2
    assert "the following arguments are required: TABLE.npy, --party" in found.stderr


def test_the_printed_file_has_every_option_and_is_read_again(write):
    printed = nescio_here("serve", "--print-config")
    assert printed.returncode == 0
    values = tomllib.loads(printed.stdout)
    assert values["port"] == 8080
    assert values["drain-seconds"] == 5.0
    path = write("party = 0\n" + printed.stdout + '[[table]]\nfile = "words.npy"\n')
    found, plain = parse("--config", path), parse("words.npy", "--party", 0)
    ignored = {"config", "tables", "name", "run", "version_now", "config_changes"}
    assert {k: v for k, v in vars(found).items() if k not in ignored} == {
        k: v for k, v in vars(plain).items() if k not in ignored
    }
    again = nescio_here("serve", "--config", path, "--port", 1, "--print-config").stdout
    assert tomllib.loads(again)["port"] == 1
    assert tomllib.loads(again)["table"] == [
        {"file": str(path.parent / "words.npy"), "name": "words"}
    ]
