/** What was typed into a form, kept over reloads: in this tab, until it is sent, thrown away or signed out of. */

const PLACE = "relaxdp draft";

/**
 * @param {string} page whose form it is
 * @param {FormData} data
 */
export function keepDraft(page, data) {
  const fields = [...data].filter(([, value]) => typeof value === "string");
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ page, fields }));
  } catch {} // there is no room, or storage is switched off: then nothing is kept
}

/**
 * Return what was typed into the form of a page, by the names of its fields; null where nothing was.
 *
 * @param {string} page
 * @returns {Record<string, string> | null}
 */
export function draftOf(page) {
  const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "null");
  return kept?.page === page ? Object.fromEntries(kept.fields) : null;
}

/** Forget it. */
export const dropDraft = () => sessionStorage.removeItem(PLACE);
