/** Whether reports were fabricated: the result, the answers that are pushed, and what the test cannot detect. */

import { h, notice, put, tableHead, tableRow } from "../kit/dom.js";
import { plural, whole } from "../kit/words.js";
import { nameOf } from "./results.js";
import { between, inside } from "./words.js";

/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("../kit/wire.d.ts").Integrity} Integrity */
/** @typedef {import("../kit/wire.d.ts").MadeUp} MadeUp */

const KINDS = { repeated: "sent again too often", changed: "changed too often", older: "sent too often at first" };
const CHANCE = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const MOST_PUSHED = 10;

/** @param {Measure} measure */
export function integrityPart(measure) {
  const body = h("div", {});
  const element = h("section", { class: "card", hidden: true }, h("h2", {}, "Fabricated reports"), body);

  /** @param {Integrity | null} found null where the campaign has one level */
  function update(found) {
    if (found === null) {
      body.replaceChildren(
        h("p", {}, "The campaign has one level. There are no two reports to compare, so fabrication is not noticed."),
      );
      element.hidden = false;
      return;
    }
    const { tested, untested, limits } = found;
    element.hidden = tested === 0;
    put(
      body,
      found.tested === 0 ? h("p", { class: "muted" }, "No device has two reports to compare yet.") : verdict(found),
      h(
        "p",
        {},
        `${whole(tested)} of ${plural(tested + untested, "device")} have two reports or more and could be tested.` +
          (found.p_value_ever < 1
            ? ` The chance of this with honest devices is at most ${chance(found.p_value_ever)}, however often you look.`
            : ""),
      ),
      pushedTable(found),
      sharesTable(found, measure),
      h("ul", { class: "small muted" }, ...limits.map((each) => h("li", {}, each))),
    );
  }
  return { element, update };
}

/** @param {Integrity} found */
function verdict({ alarm, made_up, false_alarms, tested, unnoticed }) {
  const rate = `However often you look, at most ${chance(100 * false_alarms)} % of honest campaigns ever raise an alarm.`;
  return alarm
    ? notice(`Fabricated reports were noticed: at least ${devices(made_up)} devices. ${rate}`, "warn")
    : notice(
        `Nothing was noticed. About ${whole(unnoticed)} of ${plural(tested, "tested device")} ` +
          `(${chance((100 * unnoticed) / tested)} %) can repeat every report without being noticed. ${rate}`,
        "",
      );
}

/** @param {Integrity} found */
function pushedTable({ pushed }) {
  if (pushed.length === 0) return null;
  const rows = pushed
    .slice(0, MOST_PUSHED)
    .map((each) => tableRow(each.value, KINDS[each.kind], devices(each.devices)));
  const more = pushed.length - rows.length;
  const rest = more > 0 ? ` The other ${whole(more)} are told by “relaxdp campaign check”.` : "";
  return h(
    "table",
    {},
    h("caption", {}, `Pushed answers.${rest}`),
    tableHead("Answer", "How", "Devices, at least"),
    h("tbody", {}, ...rows),
  );
}

/**
 * @param {Integrity} found
 * @param {Measure} measure
 */
function sharesTable({ shares, without, tested, untested }, measure) {
  if (shares === null || (without === null && untested === 0)) return null;
  const rows = shares.map((row, place) => {
    const clean = without?.[place];
    const cells = [row, ...(clean === undefined ? [] : [clean])];
    return tableRow(
      nameOf(row, measure),
      ...cells.map((each) => `${measure.value(inside(each))} (${between(each, measure)})`),
    );
  });
  const note = without === null ? "" : " Intervals without fabricated reports hold for all answers at once.";
  const names = ["All reports", ...(without === null ? [] : ["Without fabricated ones"])];
  return h(
    "table",
    {},
    h("caption", {}, `From the ${whole(tested)} tested devices.${note}`),
    tableHead(measure.numeric ? "Mean" : "Answer", ...names),
    h("tbody", {}, ...rows),
  );
}

/** @param {MadeUp} found */
const devices = ({ estimate, low, high }) => `${whole(estimate)} (${whole(low)} to ${whole(high)})`;

/** @param {number} value */
const chance = (value) => (value > 0 && value < 1e-4 ? value.toExponential(0) : CHANCE.format(value));
