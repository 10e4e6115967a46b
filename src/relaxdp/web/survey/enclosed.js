/** What the service enclosed with the page: its answer to what this page would ask first, so that it need not. */

import { fieldsOf } from "../device/typed.js";

/**
 * Return the campaign as the page brought it, with its entity tag, and forget it; null where it brought none.
 *
 * @param {Document} [page]
 * @returns {{ tag: string, content: unknown } | null}
 */
export function takeEnclosed(page = document) {
  const found = page.querySelector('meta[name="enclosed"]');
  if (found === null) return null;
  found.remove();
  try {
    const { tag, content } = fieldsOf(JSON.parse(found.getAttribute("content") ?? ""));
    return typeof tag === "string" && content !== undefined ? { tag, content } : null;
  } catch {
    return null; // then the service is asked
  }
}
