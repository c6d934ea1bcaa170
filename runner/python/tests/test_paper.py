"""Paper accounts from Python."""

import shutil
from pathlib import Path

import pytest

import runner

GOLDEN = Path(__file__).parents[3] / "runner" / "history" / "src" / "paper" / "golden.jsonl"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A home with the account `a`: three nights and two reported fills."""
    monkeypatch.delenv("RUNNER_HOME", raising=False)
    home = tmp_path / ".runner" / "paper"
    home.mkdir(parents=True)
    shutil.copy(GOLDEN, home / "a.jsonl")
    return tmp_path


def test_an_account_and_its_ledger(site):
    account = runner.paper("a", directory=site)
    assert (account.state, account.policy["name"], account.night["number"]) == ("open", "desk@1", 2)
    assert [entry["entry"] for entry in account.ledger.entries] == ["opened", "night", "night", "transfer", "fills", "night"]
    assert account.slippage["slippage"]["all"]["fills"] == 2
    assert account.ledger.statement("2024-01-03").startswith("STATEMENT OF a\n2024-01-03 to 2024-01-03")


def test_the_ledger_as_a_frame(site):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = runner.paper("a", directory=site).ledger.to_pandas()
    cash = frame[frame["kind"].isin(["opened", "transfer", "booking"])]["cash"].sum()
    nights = frame[frame["kind"] == "night"]
    assert cash == pytest.approx(nights["cash"].iloc[-1], rel=1e-12)
    assert list(nights["night"]) == [0.0, 1.0, 2.0]


def test_errors(site):
    with pytest.raises(runner.Error, match="there is no account `b`"):
        runner.paper("b", directory=site)
    path = runner.paper("a", directory=site).ledger.path
    path.write_text(path.read_text().replace("-5000", "-4000"))
    with pytest.raises(runner.Error, match="line 4"):
        runner.paper("a", directory=site)
