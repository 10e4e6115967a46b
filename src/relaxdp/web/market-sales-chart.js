/** Income against privacy loss, and what is left of the budget. */

import { ticksOf } from "./dashboard-charts.js";
import { h, s } from "./dashboard-dom.js";
import { whole } from "./dashboard-words.js";
import { fitted } from "./market-fit.js";
import { shown } from "./market-words.js";

const EDGE = { left: 52, right: 14, top: 14, bottom: 24 };
const HEIGHT = 190;
const TITLE = "Income against loss";

/**
 * Return a bar of the budget: what buyers know and what the platform holds, each a part of what may ever be given.
 *
 * @param {any} sale
 */
export function budgetBar({ budget, left, loss_buyers: sold, loss_platform: delivered }) {
  const most = Number(budget ?? delivered);
  if (most === 0) return null;
  const part = (/** @type {string} */ epsilon) => (100 * Math.min(most, Number(epsilon))) / most;
  const words = [`sold up to ε ${shown(sold)}`, `delivered up to ε ${shown(delivered)}`, budget === null ? "no budget was set" : `ε ${shown(left)} left of a budget of ε ${shown(budget)}`];
  return h(
    "div",
    { class: "budget" },
    s(
      "svg",
      { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `Budget: ${words.join(", ")}` },
      s("rect", { class: "bar-ground", width: 100, height: 10 }),
      s("rect", { class: "bar-held", width: part(delivered), height: 10 }),
      s("rect", { class: "bar-fill", width: part(sold), height: 10 }),
    ),
    h("ul", { class: "legend small muted" }, ...words.map((each, place) => h("li", { class: ["sold", "held", "left"][place] }, each))),
  );
}

/**
 * Return what each level brought, at the place of the loss that it means.
 *
 * @param {any} sale
 */
export function incomePart(sale) {
  const heading = h("h3", {}, TITLE);
  if (sale.sold.length === 0) return h("div", {}, heading, h("p", { class: "muted" }, "Nothing was sold yet."));
  const words = "Credits that each level brought. The band ends at what all buyers together know, the dashed line stands at what the platform holds.";
  return h("div", {}, heading, fitted("income", (width) => picture(sale, width)).place, h("p", { class: "small muted" }, words));
}

/**
 * @param {any} sale
 * @param {number} width
 */
function picture({ sold, loss_buyers: loss, loss_platform: held, budget }, width) {
  const most = Math.max(Number(budget ?? 0), Number(held));
  const right = width - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const scale = ticksOf(0, Math.max(1, ...sold.map((/** @type {any} */ level) => level.income)));
  const x = (/** @type {string | number} */ epsilon) => EDGE.left + (Number(epsilon) / most) * (right - EDGE.left);
  const y = (/** @type {number} */ value) => EDGE.top + (bottom - EDGE.top) * (1 - value / scale.high);
  const parts = sold.map((/** @type {any} */ level) => `epsilon ${level.epsilon}: ${whole(level.income)}`);
  const drawn = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${TITLE}: ${parts.join(", ")}` });
  drawn.append(s("rect", { class: "band", x: EDGE.left, y: EDGE.top, width: x(loss) - EDGE.left, height: bottom - EDGE.top }));
  for (const each of scale.ticks.filter(Number.isInteger)) {
    drawn.append(s("line", { class: "axis", x1: EDGE.left, x2: right, y1: y(each), y2: y(each) }));
    drawn.append(s("text", { x: EDGE.left - 6, y: y(each) + 4, "text-anchor": "end" }, whole(each)));
  }
  for (const level of sold) {
    drawn.append(s("line", { class: "interval", x1: x(level.epsilon), x2: x(level.epsilon), y1: bottom, y2: y(level.income) }));
    drawn.append(s("circle", { class: "dot", cx: x(level.epsilon), cy: y(level.income), r: 5 }));
  }
  drawn.append(s("line", { class: "mark", x1: x(held), x2: x(held), y1: EDGE.top, y2: bottom }));
  for (const each of ticksOf(0, most).ticks.filter((tick) => tick <= most * 1.0001)) {
    drawn.append(s("text", { x: x(each), y: HEIGHT - 6, "text-anchor": "middle" }, String(Number(each.toPrecision(6)))));
  }
  drawn.append(s("text", { x: 0, y: HEIGHT - 6 }, "ε"));
  return drawn;
}
