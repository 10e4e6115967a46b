/**
 * The survey page: who asks, the person's limit, then the question, then what was sent.
 *
 * This file finds the campaign and the language. What is shown and when something is sent is decided in flow.js, and all
 * rules are the device's own; the page only asks it.
 */

import { missingNames } from "../device/missing.js";
import * as language from "../kit/language.js";
import { part, showProblem } from "./page.js";

/**
 * Where the campaign lies: the page is at PREFIX/survey/NAME, the campaign at PREFIX/v1/campaigns/NAME; several questions
 * are asked at PREFIX/surveys/NAME and lie at PREFIX/v1/surveys/NAME.
 */
const PLACE = /^(.*)\/(surveys?)\/([^/]+)\/?$/;
/** The words of this page by themselves: what puts them together needs more than an old browser has. */
const word = /** @type {(name: import("./words.js").Name) => string} */ (language.word);
const WORDS = { en: () => import("./words/en.js"), de: () => import("./words/de.js") };
const SEVERAL = { en: () => import("./several/words/en.js"), de: () => import("./several/words/de.js") };
const place = PLACE.exec(location.pathname);

async function begin() {
  const invitation = takeInvitation();
  await speak(language.preferred(navigator.languages, language.rememberedLanguage()));
  part("languages").replaceChildren(language.languageSwitch(choose));
  language.onLanguage(() => language.translate(document));
  language.translate(document);
  part("loading").textContent = word("page.loading");
  const missing = missingNames();
  if (missing.length > 0) {
    const sentences = () => [...missing.map((name) => word(`missing.${name}`)), word("problem.until")];
    return showProblem(() => ({ title: word("problem.needed"), sentences: sentences() }));
  }
  if (place === null) {
    return showProblem(() => ({ title: word("problem.title"), sentences: [word("problem.noSurvey")] }));
  }
  // Only now: a browser that lacks a part might not even read the rest.
  const { Survey, several } = await import("./flow.js");
  const [, prefix, kind, name] = place;
  if (kind === "survey") return new Survey(`${location.origin}${prefix}/v1/campaigns/${name}`, invitation).begin();
  const { Several } = await several();
  return new Several(`${location.origin}${prefix}/v1/surveys/${name}`, invitation).begin();
}

/** @param {ReturnType<typeof language.preferred>} chosen */
async function speak(chosen) {
  const { language: name } = chosen;
  const own = await Promise.all([WORDS[name](), ...(place?.[2] === "surveys" ? [SEVERAL[name]()] : [])]);
  language.speak(chosen, Object.assign({}, ...own.map((file) => file.default)));
}

/** @param {language.Language} name */
async function choose(name) {
  try {
    await speak(language.preferred(navigator.languages, name));
    language.rememberLanguage(name);
  } catch {
    // Its words cannot be had without a network: the page goes on as it was.
  }
}

/** An invitation comes behind the # of a link, which browsers do not send. It leaves the address bar, too. */
function takeInvitation() {
  const match = /^#invitation=([A-Za-z0-9_-]{1,200})$/.exec(location.hash);
  if (match === null) return null;
  history.replaceState(null, "", location.pathname);
  return match[1];
}

begin().catch(() => {
  part("loading").hidden = true;
  part("broken").hidden = false;
});
