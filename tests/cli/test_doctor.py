import json

from gflowexplainer.cli import doctor


def test_all_is_well_here(invoke, workspace):
    result = invoke("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = {finding["what"]: finding["state"] for finding in json.loads(result.stdout)}
    assert found["torch"] == found["self-test"] == "ok"
    assert "broken" not in found.values()


def test_a_missing_extra_is_no_problem_but_a_missing_package_is(invoke, monkeypatch, workspace):
    monkeypatch.setattr(doctor, "_self_test", list)
    monkeypatch.setattr(doctor, "EXTRAS", {"no-such-extra": ("magic", "pip install magic")})
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "for magic: pip install magic" in result.stdout
    monkeypatch.setattr(doctor, "ESSENTIAL", ("torch", "no-such-package"))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "pip install no-such-package" in result.stdout


def test_a_check_that_breaks_is_a_finding(monkeypatch, invoke, workspace, tmp_path):
    monkeypatch.setattr("gflowexplainer.testing.house", lambda: 1 / 0)
    monkeypatch.setenv("GFLOWEXPLAINER_DATA", str(tmp_path / "none"))
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    found = {finding["what"]: finding for finding in json.loads(result.stdout)}
    assert found["self-test"]["detail"].startswith("ZeroDivisionError")
    assert "GFLOWEXPLAINER_DATA" in found["data"]["detail"]
