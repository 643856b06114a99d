"""The audit and the log of one event type: `maia audit --type` and `maia log show --type`."""

from __future__ import annotations

from datetime import UTC, datetime

from maia import open as open_domain
from maia.testing import Command, publish_here


def test_the_audit_and_the_log_are_shown_by_type(maia_command: Command) -> None:
    """Rows and commits of the other type are left out, whatever the version; a type that nobody knows is refused."""
    home = maia_command
    home.do("domain", "init", str(home.home), "--name", "clinic")
    home.keys("owner", "other", "lab", "visitor")
    for name in ("owner/Report", "owner/Bill"):
        home.do("type", "define", f"{name}@1", "--attribute", "ward:string:1")
        for client in ("broker", "lab"):
            home.grant("--from", "owner", "--to", client, "--type", name, "--action", "publish", "--irrevocable")
    opened = open_domain(home.home).home
    for name in ("Report", "Bill"):
        publish_here(opened, name, [{"ward": "A"}], as_="lab", at=datetime.now(UTC), publication=f"first {name}")
        assert home("subscribe", "--type", name, "--as", "visitor").code == 3
    told = {name: home.do("audit", "--type", name)["rows"] for name in ("Report", "owner/Bill")}
    for rows in told.values():
        assert [row["kind"] for row in rows].count("refuse") == 1
        assert len({row["type_id"] for row in rows}) == 1
    assert told["Report"][0]["type_id"] != told["owner/Bill"][0]["type_id"]
    assert len(home.do("audit", "--kind", "refuse")["rows"]) == 2
    for name in ("Report", "Bill"):
        [commit] = home.do("log", "show", "--type", name)["commits"]
        assert commit["publication"] == f"first {name}"
    assert len(home.do("log", "show")["commits"]) == 2
    home.do("type", "define", "owner/Report@2", "--attribute", "ward:string:1", "--attribute", "bed:string:2")
    assert len(home.do("log", "show", "--type", "Report")["commits"]) == 1, "of any version"
    home.do("type", "define", "other/Bill@1", "--attribute", "ward:string:1")
    for verb in (("audit",), ("log", "show")):
        assert home.refused(*verb, "--type", "Bill") == (2, "TYPE_AMBIGUOUS")
        assert home.refused(*verb, "--type", "Nothing") == (5, "TYPE_NOT_FOUND")
        assert home(*verb, "--type", "other/Bill").code == 0
