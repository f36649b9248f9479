import json
import tempfile
from importlib import metadata


def test_all_is_well_here(invoke, workspace):
    result = invoke("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = {finding["what"]: finding["state"] for finding in json.loads(result.stdout)}
    assert found["torch"] == found["self-test"] == "ok"
    assert "broken" not in found.values()


def test_a_missing_extra_is_no_problem_but_a_missing_package_is(invoke, monkeypatch, workspace):
    installed, missing = metadata.distribution, {"rdkit"}

    def distribution(name):
        if name in missing:
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert 'drawings: pip install "gflowexplainer[molecules]"' in result.stdout
    missing.add("scipy")
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "not installed: pip install scipy" in result.stdout


def test_a_check_that_breaks_is_a_finding(monkeypatch, invoke, workspace, tmp_path):
    # The self-test stores its explanation in a temporary folder, and there is no room for one.
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_: 1 / 0)
    monkeypatch.setenv("GFLOWEXPLAINER_DATA", str(tmp_path / "none"))
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    found = {finding["what"]: finding for finding in json.loads(result.stdout)}
    assert found["self-test"]["detail"].startswith("ZeroDivisionError")
    assert "GFLOWEXPLAINER_DATA" in found["data"]["detail"]
