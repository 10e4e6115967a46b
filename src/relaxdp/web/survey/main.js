/**
 * The survey page: the person's limit, then the question, then what was sent.
 *
 * This file decides what is shown and when something is sent. All rules are the device's own; the page only asks it.
 */

import { missingParts } from "../device/missing.js";
import { ProblemView, part } from "./page.js";

/** Where the campaign lies: the page is at PREFIX/survey/NAME, the campaign at PREFIX/v1/campaigns/NAME. */
const PLACE = /^(.*)\/survey\/([^/]+)\/?$/;

async function begin() {
  part("loading").textContent = "Asking the server about this survey …";
  const missing = missingParts();
  if (missing.length > 0) return new ProblemView().missing(missing);
  const place = PLACE.exec(location.pathname);
  if (place === null) return new ProblemView().sentences(["There is no survey at this address."]);
  // Only now: a browser that lacks a part might not even read the rest.
  const { Survey } = await import("./flow.js");
  await new Survey(`${location.origin}${place[1]}/v1/campaigns/${place[2]}`, takeInvitation()).begin();
}

/** An invitation comes behind the # of a link, which browsers do not send. It leaves the address bar, too. */
function takeInvitation() {
  const match = /^#invitation=([A-Za-z0-9_-]{1,200})$/.exec(location.hash);
  if (match === null) return null;
  history.replaceState(null, "", location.pathname);
  return match[1];
}

begin().catch(() => new ProblemView().sentences(["This page could not be loaded completely. Nothing was sent."], true));
