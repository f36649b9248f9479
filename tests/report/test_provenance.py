import importlib
import importlib.machinery
import sys
import types

import pytest

from gflowexplainer.errors import ConfigError
from gflowexplainer.report.provenance import code_digest, command_line, environment, source_path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package into a folder of its own ("name__in__folder" for a file below); returns the digest, uncached."""

    def write(folder, **files):
        root = tmp_path / folder / "made_up"
        root.mkdir(parents=True)
        for name, content in ({"__init__": b""} | files).items():
            path = root.joinpath(*name.split("__in__")[::-1]).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        monkeypatch.syspath_prepend(root.parent)
        importlib.invalidate_caches()
        return code_digest.__wrapped__

    return write


def test_the_digest_follows_names_and_contents_of_files_and_nothing_else(package):
    found = {
        package("a", one=b"x = 1\n")("made_up"),
        package("b", one=b"x = 2\n")("made_up"),
        package("c", two=b"x = 1\n")("made_up"),
        package("d", one=b"x = 1\n", deep__in__below=b"")("made_up"),
    }
    assert len(found) == 4
    assert package("e", one=b"x = 1\r\n")("made_up") in found  # line endings and the place do not count


def test_parts_of_a_package_have_digests_of_their_own(package):
    digest = package("a", one=b"1", two=b"2")
    before = digest("made_up.one"), digest("made_up.two"), digest("made_up.one", "made_up.two")
    assert digest("made_up.two", "made_up.one") == before[2]
    digest = package("b", one=b"1", two=b"3")
    after = digest("made_up.one"), digest("made_up.two"), digest("made_up.one", "made_up.two")
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, False, False]


def test_the_library_is_meant_where_nothing_is_named():
    assert code_digest() == code_digest("gflowexplainer") == environment()["code"]
    assert code_digest() != code_digest("gflowexplainer.ops")


def test_a_package_that_is_not_there_is_named():
    for name in ("no_such_package", "gflowexplainer.nothing"):
        with pytest.raises(ConfigError, match=name):
            code_digest(name)
        assert source_path(name) is None


@pytest.mark.parametrize(
    ("started", "module", "wanted"),
    [
        ("bin/gflowexplainer", None, "gflowexplainer explain --index 3"),
        ("src/gflowexplainer/__main__.py", "gflowexplainer.__main__", "gflowexplainer explain --index 3"),
        ("bench/tool/__main__.py", "bench.tool.__main__", "python -m bench.tool explain --index 3"),
        ("bench/tool/page.py", "bench.tool.page", "python -m bench.tool.page explain --index 3"),
    ],
)
def test_a_command_is_named_as_one_would_type_it(monkeypatch, started, module, wanted):
    main = types.ModuleType("__main__")
    main.__spec__ = None if module is None else importlib.machinery.ModuleSpec(module, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", [started, "explain", "--index", "3"])
    assert command_line() == wanted
