"""Files that appear whole or not at all: permissions, long names, full disks, and what errors call them."""

import errno
import os
import stat
from pathlib import Path

import pytest

from bayesvm import atomic, persistence
from bayesvm.atomic import remove_unfinished, replacing, try_to_write, write_whole

posix = pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
# 255 bytes is the most that file systems take: in one byte, two, three and four a character.
LONG = ["m" * 255, "é" * 127 + "m", "語" * 85, "😀" * 63 + "abc", "a" * 99 + "é" * 78]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "model.bayesvm"
    path.write_bytes(b"old")
    path.chmod(mode)
    persistence.write(path, "k", {})
    assert mode_of(path) == mode
    assert persistence.read(path) == ("k", persistence.VERSION, {})


@posix
def test_other_users_cannot_read_a_private_file_while_it_is_replaced(tmp_path):
    path = tmp_path / "model.bayesvm"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as temporary:
        temporary.write_bytes(b"rows of data")
        assert mode_of(temporary) == 0o600
    assert path.read_bytes() == b"rows of data"


@posix
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        persistence.write(tmp_path / "model", "k", {})
        (tmp_path / "other").touch()
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "model") == mode_of(tmp_path / "other") == 0o666 & ~mask


@pytest.mark.parametrize("name", LONG, ids=["ascii", "two bytes", "three", "four", "cut inside a character"])
def test_names_of_the_greatest_length_are_written_and_cleared_up(tmp_path, name):
    assert len(name.encode()) == 255
    for content in (b"first", b"second"):
        try_to_write(tmp_path / name, 10)
        write_whole(tmp_path / name, content)
    assert (tmp_path / name).read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with replacing(tmp_path / name) as temporary:
        assert len(temporary.name.encode()) < 143  # the shortest limit that is in use


def test_what_a_killed_process_left_is_removed_for_one_name_only(tmp_path):
    names = ["m" * 150 + "1", "m" * 150 + "2", "[a]*?"]
    left = {name: tmp_path / atomic._unfinished(name, "0123456789abcdef") for name in names}
    assert len(set(left.values())) == 3
    for path in left.values():
        path.touch()
    for name in names:
        remove_unfinished(tmp_path / name)
        assert not left.pop(name).exists()
        assert all(path.exists() for path in left.values())


def test_a_full_disk_names_the_file_of_the_user_and_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "model.bayesvm"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="model.bayesvm could not be written .No space left on device.") as caught:
        write_whole(path, b"new")
    assert caught.value.errno == errno.ENOSPC
    assert ".tmp" not in str(caught.value)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("path", "error"),
    [("nowhere/model", FileNotFoundError), (".", IsADirectoryError), ("file/model", NotADirectoryError)],
)
def test_errors_name_the_path_as_it_was_given(tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for write in (lambda: write_whole(path, b""), lambda: try_to_write(path)):
        with pytest.raises(error) as caught:
            write()
        assert f"{path} could not be written" in str(caught.value)
        assert ".tmp" not in str(caught.value)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    with pytest.raises(PermissionError, match="model could not be written"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"


def test_room_is_tried_and_given_back(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    try_to_write(path, 10_000)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="model could not be written .No space left"):
        try_to_write(path, 10_000)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")  # noqa: PTH110
def test_devices_are_written_to_and_not_replaced():
    with pytest.raises(OSError, match="/dev/full could not be written .No space left"):
        write_whole("/dev/full", b"x")
    write_whole("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116


@posix
def test_another_group_does_not_get_what_the_old_one_had(tmp_path, monkeypatch):
    """Where neither the owner nor the group of a file can be kept, its new group may not read it."""
    path = tmp_path / "shared"
    path.write_text("old")
    path.chmod(0o660)
    real = Path.stat

    def of_another_group(self, **options):
        found = real(self, **options)
        return os.stat_result((*found[:5], found.st_gid + 1, *found[6:])) if self == path else found

    def refused(*_):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "chown", refused)
        patch.setattr(Path, "stat", of_another_group)
        write_whole(path, b"new")
    assert mode_of(path) == 0o600
