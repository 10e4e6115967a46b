"""Write docs/figures/dashboard.png, a campaign half-way: python -m tests.browser.dashboard_figure."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.browsers import chromium
from tests.browser.dashboard_operator import Operator
from tests.servers.collectors import running

from relaxdp.device.address import CampaignAddress, Server
from relaxdp.device.client import Client
from relaxdp.device.participation import ask_offer
from relaxdp.device.simulate import Fleet
from relaxdp.device.tour import WATCHED, campaigns

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "dashboard.png"
DEVICES = (5000, 5000, 5000, 1500)
"""How many of the devices have reported at each level so far."""


def main() -> None:
    """Take the picture."""
    with tempfile.TemporaryDirectory() as folder, running(f"{folder}/collector.db", Path(folder)) as server:
        server.create(**campaigns(5000, 0.025)[1])
        client, address = Client(attempts=3), CampaignAddress(Server.parse(server.base), WATCHED)
        fleet = Fleet(5000, 5, seed=1)
        for devices in DEVICES:
            offer = ask_offer(client, address)
            reports = fleet.reports(offer, offer.open[-1])[:devices]
            for start in range(0, devices, 1000):
                body = {"reports": reports[start : start + 1000]}
                assert server.ask("POST", f"/v1/campaigns/{WATCHED}/reports/batch", body).status == 200
        with chromium() as browser:
            someone = Operator(browser, server, viewport={"width": 1100, "height": 1250}, color_scheme="light")
            someone.sign_in()
            someone.campaign(WATCHED)
            expect(someone.page.locator(".levels tbody tr").nth(3)).to_contain_text("1,500")
            expect(someone.page.locator(".panels").get_by_role("img")).to_have_count(5)
            someone.page.screenshot(path=FIGURE)
            someone.leave()


if __name__ == "__main__":
    main()
