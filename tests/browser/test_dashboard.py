"""The operator's dashboard in a real browser: signing in, creating, watching, relaxing, exporting; readable by all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, expect
from tests.browser.browsers import in_both, saved
from tests.browser.dashboard_operator import PHONE, VALUES, Operator, commute, report_all
from tests.browser.survey_person import Collector, Person, overflow, violations
from tests.patience import until
from tests.servers.collectors import Running, running

from relaxdp.estimation.planning import find_margin, find_n

New = Callable[..., Operator]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("dashboard")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


@pytest.fixture
def operator(browser: Browser, server: Running) -> Iterator[New]:
    made: list[Operator] = []

    def make(*, signed_in: bool = True, **options: Any) -> Operator:
        made.append(Operator(browser, server, **options))
        if signed_in:
            made[-1].sign_in()
        return made[-1]

    yield make
    for each in made:
        each.leave()


@pytest.mark.long
def test_the_token_stays_in_its_tab(operator: New) -> None:
    someone = operator(signed_in=False)
    page = someone.page
    someone.sign_in("wrong")
    expect(page.get_by_role("alert")).to_have_text("This is not the operator’s token.")
    someone.sign_in("smørrebrød")
    expect(page.get_by_role("alert")).to_contain_text("This is not a token")
    someone.sign_in()
    page.reload()
    someone.heading("Campaigns")
    kept = "() => [localStorage.length, document.cookie, location.href, document.documentElement.outerHTML].join()"
    assert someone.server.token not in page.evaluate(kept)
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    other = someone.open()
    expect(other.get_by_label("Operator’s token")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_label("Operator’s token")).to_be_visible()


@in_both(long=True)
def test_a_campaign_is_created_with_the_keyboard_alone(operator: New, server: Running) -> None:
    someone = operator()
    page, press = someone.page, someone.page.keyboard
    page.get_by_role("link", name="New campaign").last.focus()
    press.press("Enter")
    someone.heading("New campaign")
    for words in ("Which fruit?", None, "apple\npear\nfig\nother", None, "0.5, 1, 2", "100000", "1"):
        press.press("Tab")
        if words is not None:
            press.press("Control+a")
            press.type(words)
    advice = page.get_by_role("complementary")
    expect(advice).to_contain_text("Precise enough at ε 2")
    for epsilon, row in zip(("0.5", "1", "2"), advice.locator("tbody tr").all(), strict=True):
        width = find_margin(n=100_000, planned_values=4, epsilon=epsilon)
        needed = find_n(0.01, epsilon=epsilon, planned_values=4)
        expect(row).to_contain_text(re.compile(rf"± {100 * width:.2g} %.*{needed:,}"))
    press.press("Enter")
    someone.heading("Which fruit?")
    someone.fact("Open level", "ε 0.5 (1 of 3)")
    (made,) = [each for each in _campaigns(server) if each["id"] == page.url.rpartition("/")[2]]
    assert made["encoding"]["values"] == ["apple", "pear", "fig", "other"]
    assert made["target"]["half_width"] == 0.01


def test_what_the_form_asks_comes_from_the_encodings(operator: New, server: Running) -> None:
    """Each kind of answer has its own encodings, and each of these its own options."""
    someone = operator()
    page = someone.page
    page.goto(f"{server.base}/#new")
    page.get_by_text("More", exact=True).click()
    chosen = page.get_by_label("How answers are blurred").locator("visible=true")
    expect(chosen.locator("option")).to_have_count(5)
    expect(page.get_by_label("Buckets")).to_be_hidden()
    chosen.select_option("local-hash")
    page.get_by_label("Buckets").fill("many")
    page.get_by_label("Question").fill("Which town?")
    page.get_by_label("Possible answers").fill("a\nb\nc")
    page.get_by_role("button", name="Create the campaign").click()
    expect(page.get_by_text("A whole number, or nothing.").last).to_be_visible()
    page.get_by_label("Buckets").fill("16")
    page.get_by_role("button", name="Create the campaign").click()
    someone.heading("Which town?")
    (made,) = [each for each in _campaigns(server) if each["question"] == "Which town?"]
    assert (made["encoding"]["name"], made["encoding"]["options"]) == ("local-hash", {"buckets": 16})
    page.goto(f"{server.base}/#new")
    page.get_by_text("A number, of which").click()
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_label("How answers are blurred").locator("visible=true").locator("option")).to_have_count(3)


@pytest.mark.long
def test_what_to_expect_is_not_of_what_stood_there_before(operator: New, server: Running) -> None:
    page = operator().page
    page.goto(f"{server.base}/#new")
    advice = page.get_by_role("complementary")
    page.get_by_label("Possible answers").fill("apple\npear")
    expect(advice.get_by_role("table")).to_be_visible()
    page.get_by_label("Possible answers").fill("apple\npear\napple")
    expect(advice).to_contain_text("An answer is listed twice.")
    expect(advice.get_by_role("table")).to_have_count(0)
    page.get_by_label("Possible answers").fill("apple\npear")
    expect(advice.get_by_role("table")).to_be_visible()
    page.get_by_label("Levels").fill("1, 0.5")
    expect(advice).to_contain_text("Each level must be larger than the one before")
    expect(advice.get_by_role("table")).to_have_count(0)


def test_mistakes_are_told(operator: New, server: Running) -> None:
    someone = operator()
    page = someone.page
    page.goto(f"{server.base}/#new")
    page.get_by_label("Levels").fill("1, 0.5")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#question-wrong")).to_have_text("A campaign needs a question.")
    expect(page.locator("#levels-wrong")).to_contain_text("larger than the one before")
    expect(page.locator("#values-wrong")).to_contain_text("At least two")
    expect(page.get_by_label("Question")).to_be_focused()
    before = len(_campaigns(server))
    taken = commute(server)
    page.get_by_label("Question").fill("Again?")
    page.get_by_label("Levels").fill("0.5, 1")
    page.get_by_label("A number").check()
    page.get_by_label("Smallest").fill("-5")
    page.get_by_label("Largest").fill("5")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Name in addresses").fill(taken)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("there is a campaign with the id")
    assert len(_campaigns(server)) == before + 1
    page.get_by_label("Name in addresses").fill("")
    page.get_by_label("A colour of your own").check()
    page.get_by_label("Colour", exact=True).fill("#ffe600")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("has a contrast ratio of 1.09 with the page's background")
    page.get_by_label("Colour", exact=True).fill("#1a5fb4")
    page.get_by_role("button", name="Create").click()
    someone.heading("Again?")


def narrower(first: list[float], second: list[float]) -> bool:
    """Tell whether all intervals are clearly narrower: numbers of devices come a moment before."""
    return all(new < 0.7 * old for old, new in zip(first, second, strict=True))


@in_both(long=True)
def test_the_answer_becomes_sharper(operator: New, server: Running, tmp_path: Path) -> None:
    someone = operator()
    page = someone.page
    name = commute(server)
    someone.campaign(name)
    someone.fact("Devices", "0")
    report_all(server, name)
    someone.look()
    someone.fact("Devices", "4,000")  # without a reload
    first = until(someone.widths)
    assert len(first) == len(VALUES)

    page.get_by_role("button", name="Relax to ε 1 …").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    expect(page.get_by_role("dialog")).to_contain_text("cannot be closed again")
    page.keyboard.press("Escape")
    someone.fact("Open level", "ε 0.5 (1 of 3)")
    someone.step("Relax to ε 1", "Relax to ε 1")
    someone.fact("Open level", "ε 1 (2 of 3)")
    expect(page.get_by_role("status")).to_contain_text("ε 1 (2 of 3)")
    report_all(server, name)
    someone.look()
    expect(page.locator(".levels tbody tr").nth(1)).to_contain_text(re.compile(r"1\s*4,000\s*4,000"))
    expect(page.locator(".levels tbody tr").nth(0)).to_contain_text(re.compile(r"0\.5\s*0\s*4,000"))
    until(lambda: narrower(first, someone.widths()))

    panel = page.get_by_role("img", name="by car")
    expect(panel).to_have_attribute("aria-label", re.compile("at epsilon 0.5 .* at epsilon 1 .* now "))
    assert panel.locator("circle").count() == 2
    page.get_by_text("The same as a table").click()
    told = server.ask("GET", f"/v1/campaigns/{name}/estimate", operator=True).json
    rows = page.get_by_role("region", name="Estimates of each level").locator("tbody tr").all_text_contents()
    assert len(rows) == 2 * len(VALUES)
    assert rows[0].startswith(f"0.5by car{100 * told['levels'][0]['rows'][0]['estimate']:.1f} %")

    def save(button: str, name: str) -> str:
        return saved(page, page.get_by_role("button", name=button).click, tmp_path / name)

    save("Table (CSV)", "estimates.csv")
    assert len((tmp_path / "estimates.csv").read_text("utf-8").splitlines()) == 1 + 3 * len(VALUES)
    offered = page.get_by_label("Of level").locator("option")
    expect(offered).to_have_text(["ε 1 (4,000 reports)", "ε 0.5 (4,000 reports)"])  # the last one first, none unopened
    assert save("Download reports", "reports.parquet") == f"{name}-1.parquet"
    assert pq.read_table(tmp_path / "reports.parquet").num_rows == 4000

    someone.step("Pause")
    someone.fact("State", "paused")
    someone.step("Resume")
    someone.fact("State", "open")
    someone.step("Finish …", "Finish")
    someone.fact("State", "ended")
    expect(page.get_by_text("The answer is known to")).to_contain_text("from 4,000 devices.")
    someone.step("Delete the reports …", "Delete the reports")
    expect(page.get_by_text("The reports are deleted.")).to_be_visible()
    expect(page.locator(".panels")).to_be_visible()


def test_the_number_of_reports_to_download_is_that_of_now(operator: New, server: Running) -> None:
    name = commute(server)
    report_all(server, name, devices=1000)
    someone = operator()
    someone.campaign(name)
    offered = someone.page.get_by_label("Of level").locator("option")
    expect(offered).to_have_text(["ε 0.5 (1,000 reports)"])
    report_all(server, name, devices=1000, seed=2)
    someone.look()
    expect(offered).to_have_text(["ε 0.5 (2,000 reports)"])


def test_the_most_frequent_of_many_have_intervals_that_hold_for_all(operator: New, server: Running) -> None:
    values = [f"answer {number}" for number in range(300)]
    name = commute(server, encoding={"name": "categorical", "values": values}, levels=[{"epsilon": "4"}])
    report_all(server, name)
    someone = operator()
    someone.campaign(name)
    page = someone.page
    expect(page.locator(".answer caption")).to_contain_text("95 % intervals that hold for all answers at once.")
    expect(page.get_by_text("the 20 most frequent of 300")).to_contain_text("They were chosen by their estimates")
    expect(page.locator(".panels").get_by_role("img")).to_have_count(20)
    told = server.ask("GET", f"/v1/campaigns/{name}/estimate?simultaneous=true", operator=True).json["pooled"]
    largest = sorted(told, key=lambda row: -row["estimate"])[:20]
    wanted = [f"{100 * row['low']:.1f} to {100 * row['high']:.1f} %" for row in largest]
    assert page.locator(".answer .hint").all_text_contents() == wanted
    panel = page.locator(".panels").get_by_role("img").first
    expect(panel).to_have_attribute("aria-label", re.compile(f"at epsilon 4 {wanted[0]}.*now {wanted[0]}"))
    few = commute(server)
    report_all(server, few)
    someone.campaign(few)
    expect(page.locator(".answer caption")).to_contain_text("95 % intervals, each for its answer alone.")


@pytest.mark.long
@in_both()
def test_from_question_to_answer(operator: New, server: Running, browser: Browser) -> None:
    """A person answers among many devices, the operator relaxes, the person's page follows, the interval narrows."""
    name = commute(server)
    report_all(server, name)
    someone = operator()
    someone.campaign(name)
    person = Person(browser.new_context(), Collector(server.folder, server.base, server.token), name)
    person.answer("on foot")
    person.received(1)
    someone.look()
    someone.fact("Devices", "4,001")
    first = until(someone.widths)
    someone.step("Relax to ε 1", "Relax to ε 1")
    person.look()
    person.received(2)
    report_all(server, name)
    someone.look()
    expect(someone.page.locator(".levels tbody tr").nth(1)).to_contain_text(re.compile(r"1\s*4,001\s*4,001"))
    until(lambda: narrower(first, someone.widths()))
    person.context.close()
    assert person.problems == []


def test_what_was_agreed_to_is_what_happens(operator: New, server: Running) -> None:
    """Another tab relaxes while this one asks: a second step would open a level that nobody agreed to here."""
    someone = operator()
    name = commute(server)
    someone.campaign(name)
    someone.page.get_by_role("button", name="Relax to ε 1 …").click()
    server.ask("POST", f"/v1/campaigns/{name}/relax", operator=True)
    someone.page.get_by_role("dialog").get_by_role("button", name="Relax to ε 1").click()
    expect(someone.page.get_by_role("alert")).to_contain_text("moved on by itself meanwhile")
    assert server.ask("GET", f"/v1/campaigns/{name}").json["open_level"] == 1


def test_a_connection_that_breaks_off_comes_back(operator: New, server: Running) -> None:
    """Also where the page had the news, and not yet the estimate that goes with it."""
    someone = operator()
    name = commute(server)
    someone.campaign(name)
    report_all(server, name)
    for part in ("**/status", "**/estimate*"):
        someone.page.route(part, lambda route: route.abort())
        someone.look()
        expect(someone.page.locator(".live")).to_have_text("connection lost, trying again")
        someone.page.unroute(part)
    someone.look()
    expect(someone.page.locator(".live")).to_have_text("live")
    someone.fact("Devices", "4,000")
    expect(someone.page.locator(".answer")).to_be_visible()


@pytest.mark.long
def test_a_question_with_a_script_is_text(operator: New, server: Running) -> None:
    nasty = "<script>document.title='no'</script><img src=x onerror=\"document.title='no'\">"
    values = [nasty, "</textarea><svg onload=alert(1)>"]
    name = commute(server, question=nasty, encoding={"name": "categorical", "values": values})
    report_all(server, name, devices=1000)
    someone = operator()
    expect(someone.page.get_by_role("link", name=nasty)).to_be_visible()
    someone.campaign(name)
    someone.heading(nasty)
    expect(someone.page.get_by_role("img", name=nasty)).to_be_visible()
    assert someone.page.locator("main script, main [onerror], main [onload], main img").count() == 0
    assert someone.page.title() == f"{nasty} · relaxdp"


def test_no_inline_script_runs(operator: New) -> None:
    someone = operator(signed_in=False)
    someone.page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
        "document.body.append(script); document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=ran=2>'); }"
    )
    someone.page.wait_for_timeout(300)
    assert someone.page.evaluate("window.ran") is None
    assert len(someone.problems) >= 2  # the browser said so
    someone.problems.clear()


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_readable_by_all(operator: New, server: Running, scheme: str, width: int) -> None:
    report_all(server, commute(server, target={"half_width": 0.02}), devices=2000)
    someone = operator(signed_in=False, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = someone.page

    def look() -> None:
        assert violations(page) == []
        assert overflow(page) == 0

    look()
    someone.sign_in()
    look()
    page.get_by_role("link", name="How did you get").first.click()
    expect(page.get_by_role("img").first).to_be_visible()
    page.get_by_text("The same as a table").click()
    look()
    page.get_by_role("button", name="Finish …").click()
    look()
    page.keyboard.press("Escape")
    page.goto(f"{server.base}/#new")
    page.get_by_label("Possible answers").fill("a\nb")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("complementary").locator("tbody tr")).to_have_count(4)
    look()


@pytest.mark.long
def test_means_and_invitations(operator: New, server: Running) -> None:
    encoding = {"name": "numeric", "range": [0, 600]}
    made = server.create(question="How long did you sleep?", encoding=encoding, invitations=True)
    someone = operator(viewport=PHONE)
    someone.campaign(made["id"])
    someone.fact("Range", "0 to 600")
    someone.page.get_by_label("How many").fill("3")
    someone.page.get_by_role("button", name="Make invitations").click()
    links = someone.page.locator("pre").filter(has_text="#invitation=").inner_text().split("\n")
    codes = [link.partition("#invitation=")[2] for link in links]
    first = made["levels"][0]
    reports = [
        {"device": f"{number:032x}", "level": first, "report": 600 * (number % 2), "invitation": codes[number]}
        for number in range(2)
    ]
    server.ask("POST", f"/v1/campaigns/{made['id']}/reports/batch", {"reports": reports})
    someone.look()
    someone.fact("Devices", "2")
    someone.fact("Invitations", "2 used of 3")
    expect(someone.page.get_by_text("Too few reports yet: about")).to_have_count(2)  # two reports tell no mean
    expect(someone.page.locator(".answer")).to_be_hidden()


@pytest.mark.long
def test_quartiles(operator: New, server: Running) -> None:
    """Numbers that are reported as places tell their quartiles, and they follow the reports."""
    encoding = {"name": "wave", "range": [0, 600], "options": {"bins": 61, "window": 4}}
    made = server.create(question="How long did you sleep?", encoding=encoding, levels=[{"epsilon": "6"}])
    someone = operator(viewport=PHONE)
    someone.campaign(made["id"])
    (level,) = made["levels"]
    for number in range(2):
        reports = [{"device": f"{number:02x}{place:030x}", "level": level, "report": place} for place in range(30, 60)]
        server.ask("POST", f"/v1/campaigns/{made['id']}/reports/batch", {"reports": reports})
        someone.look()
        someone.fact("Devices", str(30 * (number + 1)))
        answer = someone.page.locator(".answer tbody tr")
        expect(answer).to_have_count(4)
        expect(answer).to_contain_text(["mean", "lower quartile", "median", "upper quartile"])
        found = server.ask("GET", f"/v1/campaigns/{made['id']}/estimate?quantiles=0.25,0.5,0.75", operator=True).json
        median = f"{found['quantiles'][1]['estimate']:.4g}"
        expect(answer.nth(2).locator(".estimate")).to_have_text(median)
    someone.page.get_by_label("Quantiles").fill("0.1, .9")
    someone.page.get_by_label("Quantiles").press("Enter")
    expect(answer).to_contain_text(["mean", "quantile 0.1", "quantile 0.9"])
    expect(someone.page.get_by_text("cover at least 95 %")).to_be_visible()
    assert violations(someone.page) == []
    assert overflow(someone.page) <= 0


def _campaigns(server: Running) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.ask("GET", "/v1/campaigns", operator=True).json["campaigns"]
    return found
