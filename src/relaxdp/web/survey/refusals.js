/** What the device refuses, told apart. */

import { RelaxdpError } from "../device/errors.js";

/** @type {Partial<Record<string, import("./words.js").Name>>} */
const LOST = { cleared: "cleared.gone", damaged: "cleared.damaged", "went back": "cleared.old" };

/**
 * @param {unknown} problem
 * @param {string} code
 */
export const isRefusal = (problem, code) => problem instanceof RelaxdpError && problem.code === code;

/**
 * Return what is said where that what this browser kept cannot be used; undefined where it is something else.
 *
 * @param {unknown} problem
 */
export const lossOf = (problem) => (problem instanceof RelaxdpError ? LOST[String(problem.fields.reason)] : undefined);

/**
 * What the device refused. Anything else is a mistake in this page, and is for its developers to see.
 *
 * @param {unknown} problem
 * @returns {RelaxdpError}
 */
export function refusalOf(problem) {
  if (problem instanceof RelaxdpError) return problem;
  throw problem;
}
