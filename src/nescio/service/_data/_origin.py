"""The first version of a table in a data folder, and the files that it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..._arrays import shown
from ...errors import ArgumentError, FileError
from ...pir import TableParams
from ...pir._checksums import Source


@dataclass(frozen=True, slots=True)
class Origin:
    """The id and digest of a table at the first start, the options, and the state of its files.

    The files count only at the first start. At later ones they must be the same.
    """

    id: bytes
    digest: str
    version: str
    output: str
    generator: str
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, params: TableParams, sources: Sequence[Source]) -> "Origin":
        """Returns the origin of a table that was made from files."""
        return cls(
            params.id,
            params.digest,
            params.version,
            params.output,
            params.generator,
            tuple(sources),
        )

    def check_options(self, name: str, given: Mapping[str, object]) -> None:
        """Raises ArgumentError for an option that is not that of the first start.

        `given` are the version, the output and the generator; None if the operator gave none.
        """
        for option, value in given.items():
            found = getattr(self, option)
            if value is not None and value != found:
                raise ArgumentError(
                    f"--{option}: found {shown(value)}, expected {shown(found)}, with which the "
                    f"data folder of table {name!r} began; leave the option out"
                )

    def check_digest(self, paths: Sequence[Path], digest: str, folder: Path) -> None:
        """Raises FileError if files have other rows than at the first start."""
        if digest != self.digest:
            names = " and ".join(map(str, paths))
            raise FileError(
                f"{names}: found the digest {digest}, expected {self.digest}, with which {folder} "
                "began: give the file of the first start, or another --data folder for another "
                "table; rows change through the admin API"
            )

    def to_dict(self) -> dict[str, object]:
        """Converts the origin to JSON types."""
        return {**asdict(self), "id": self.id.hex(), "sources": [asdict(s) for s in self.sources]}

    @classmethod
    def from_dict(cls, found: object) -> "Origin":
        """Parses the fields of `to_dict`. Raises ArgumentError."""
        names = ("id", "digest", "version", "output", "generator", "sources")
        if not isinstance(found, dict) or set(found) != set(names):
            raise ArgumentError(f"origin: found {shown(found)}, expected {', '.join(names)}")
        *texts, sources = (found[name] for name in names)
        if not all(isinstance(text, str) for text in texts) or not isinstance(sources, list):
            raise ArgumentError(f"origin: found {shown(found)}, expected texts and a list")
        try:
            name = bytes.fromhex(found["id"])
        except ValueError as error:
            raise ArgumentError(f"origin: found the id {shown(found['id'])}") from error
        digest, version, output, generator = texts[1:]
        parsed = tuple(Source.from_dict(source) for source in sources)
        return cls(name, digest, version, output, generator, parsed)
