"""Back up and restore a service, replace its token, and simulate a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden import recorded
from tests.golden.driver_server import (
    Campaign,
    Device,
    Question,
    Rejected,
    draw_reports,
    renew_token,
    restore,
    serve,
    simulate,
    take_tour,
)
from tests.golden.people import at_once, make_devices, pseudonyms

COMMUTE = Question("commute", ("0.5", "1", "2"), values=("car", "bus", "bicycle"))
KEY = bytes(range(32))


def test_backup_restore_and_token(tmp_path: Path) -> None:
    """The restored service has the same counts, knows every report of the backup, and goes on."""
    crowd = {name: ("car", "bus")[place % 2] for place, name in enumerate(pseudonyms(200))}
    first = draw_reports(COMMUTE, "0.5", crowd, key=KEY)
    people = make_devices(tmp_path / "devices", dict.fromkeys(range(4), "2"))
    with serve(tmp_path / "first") as service:
        campaign = service.create_campaign("commute", COMMUTE)
        assert set(campaign.send_reports("commute", "0.5", first)) == {"new"}
        for device in people.values():
            device.join(campaign)
            device.answer({"commute": "bicycle"})
            device.report()
        backup, counts, estimate = tmp_path / "backup.db", campaign.counts(), campaign.estimate()
        service.back_up(backup)
        late = draw_reports(COMMUTE, "0.5", {"f" * 32: "bus"}, key=KEY)
        assert campaign.send_reports("commute", "0.5", late) == ["new"]
        port, old_token = service.port, service.token

    restore(backup, tmp_path / "second")
    renew_token(tmp_path / "second")
    with serve(tmp_path / "second", port=port) as service:
        campaign = Campaign(service, "commute", [COMMUTE])
        assert service.token != old_token
        assert (campaign.counts(), campaign.estimate()) == (counts, estimate)
        # Reports of the backup are known, one that came later is new, and a different one is rejected.
        assert set(campaign.send_reports("commute", "0.5", first)) == {"same"}
        assert campaign.counts() == counts
        assert campaign.send_reports("commute", "0.5", late) == ["new"]
        name, report = next(iter(first.items()))
        other = next(value for value in ("car", "bus") if value != report)
        assert campaign.send_reports("commute", "0.5", {name: other}) == ["different"]
        campaign.relax()
        at_once(Device.report, people.values())
        recorded.check(
            "service-backup-and-restore",
            {
                "counts_of_the_backup": counts["commute"],
                "estimate_of_the_backup": estimate["commute"],
                "counts": campaign.counts()["commute"],
                "reports": [device.sent()["commute"] for device in people.values()],
            },
        )
        service.token = old_token
        with pytest.raises(Rejected):
            campaign.relax()


@pytest.mark.long
def test_a_simulated_campaign() -> None:
    """The seed decides everything; the campaign stops by itself at the level that was planned for."""
    found = simulate(devices=1000, values=4, levels="0.5,1,2,4", margin="0.08", seed=7)
    recorded.check("simulated-campaign", found)


@pytest.mark.long
def test_the_tour() -> None:
    """The tour's simulated people answer level by level until the answer is precise enough."""
    recorded.check("tour", take_tour(devices=400, margin="0.1", seed=1))
