"""Files that are mapped: larger than the memory, and unchanged by changes."""

import os

from nescio._disk import mapped_copy


def test_a_file_larger_than_the_memory_is_mapped(tmp_path):
    path = tmp_path / "large"
    size = 4 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with path.open("wb") as file:
        file.truncate(size)  # sparse: takes no space
    with path.open("rb") as file:
        found = mapped_copy(file)
    assert len(found) == size
    found[-1] = 7
    assert found[-1] == 7
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        assert file.read() == b"\0"
