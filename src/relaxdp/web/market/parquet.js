/**
 * What a Parquet file says of itself, read from its end. A file that was not released could hold answers, so it is
 * looked at before anything of it leaves this browser.
 */

import { Problem } from "../kit/problem.js";

const MARK = "PAR1";
const TAIL = 8;
const LARGEST = 1 << 24;
const DEEPEST = 16;
const DESCRIBED = "relaxdp";

/** @typedef {{ rows: number, columns: string[], notes: Map<string, string> }} Footer */

/** Thrift's compact protocol, as far as a footer needs it. Structs become maps from the numbers of their fields. */
class Reader {
  #bytes;
  #place = 0;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  #byte() {
    if (this.#place >= this.#bytes.length) throw new RangeError("the footer ends too early");
    return this.#bytes[this.#place++];
  }

  #varint() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      if (factor > Number.MAX_SAFE_INTEGER) throw new RangeError("a number of the footer is too large");
    }
  }

  #signed() {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** @param {number} length */
  #skip(length) {
    if (length > this.#bytes.length - this.#place) throw new RangeError("the footer ends too early");
    this.#place += length;
    return this.#bytes.subarray(this.#place - length, this.#place);
  }

  /**
   * @param {number} type
   * @param {number} depth
   * @returns {any}
   */
  #value(type, depth) {
    if (depth > DEEPEST) throw new RangeError("the footer is nested too deeply");
    if (type === 1 || type === 2) return type === 1;
    if (type === 3) return this.#byte();
    if (type <= 6) return this.#signed();
    if (type === 7) return this.#skip(8);
    if (type === 8) return this.#skip(this.#varint());
    if (type === 9 || type === 10) return this.#list(depth);
    if (type === 12) return this.struct(depth + 1);
    throw new RangeError("the footer has something in it that no footer has");
  }

  /** @param {number} depth */
  #list(depth) {
    const head = this.#byte();
    const length = head >> 4 === 15 ? this.#varint() : head >> 4;
    const type = head & 15;
    const values = [];
    for (let place = 0; place < length; place += 1)
      values.push(type <= 2 ? this.#byte() === 1 : this.#value(type, depth));
    return values;
  }

  /** @returns {Map<number, any>} */
  struct(depth = 0) {
    const fields = new Map();
    let id = 0;
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      id = head >> 4 === 0 ? this.#signed() : id + (head >> 4);
      fields.set(id, this.#value(head & 15, depth));
    }
    return fields;
  }
}

/**
 * Return what a file says of itself, or refuse what is no Parquet file.
 *
 * @param {Blob} file
 * @returns {Promise<Footer>}
 */
export async function footerOf(file) {
  const text = new TextDecoder();
  try {
    const tail = new Uint8Array(await file.slice(-TAIL).arrayBuffer());
    const length = new DataView(tail.buffer).getUint32(0, true);
    if (text.decode(tail.subarray(4)) !== MARK || length > LARGEST || length + TAIL > file.size)
      throw new RangeError("no footer");
    const found = new Reader(new Uint8Array(await file.slice(-TAIL - length, -TAIL).arrayBuffer())).struct();
    const names = found.get(2).map((/** @type {Map<number, any>} */ each) => text.decode(each.get(4)));
    const notes = (found.get(5) ?? []).map((/** @type {Map<number, any>} */ each) => [
      text.decode(each.get(1)),
      text.decode(each.get(2) ?? new Uint8Array()),
    ]);
    return { rows: found.get(3), columns: names.slice(1), notes: new Map(notes) };
  } catch {
    throw new Problem("This is no Parquet file, or it is damaged. Nothing was sent.");
  }
}

/**
 * Return what is for sale in a file, or refuse one that may not leave: it holds ids and one released column, and nothing else.
 *
 * @param {Blob} file
 * @returns {Promise<{ column: string, epsilon: string, objects: number }>}
 */
export async function releasedIn(file) {
  const { rows, columns, notes } = await footerOf(file);
  const said = described(notes.get(DESCRIBED));
  if (said === null)
    throw new Problem(
      "This file does not say that relaxdp release wrote it, so it could hold answers. Nothing was sent.",
    );
  const [column] = Object.keys(said.columns);
  const others = columns.filter((name) => name !== said.id && name !== column);
  if (others.length > 0) {
    throw new Problem(
      `This file has more columns than its ids and “${column}”, and they would be sent too: ${others.join(", ")}. relaxdp market deliver sends only what is for sale. Nothing was sent.`,
    );
  }
  return { column, epsilon: said.columns[column].epsilon, objects: rows };
}

/** @param {string | undefined} text */
function described(text) {
  try {
    const said = JSON.parse(text ?? "null");
    return said !== null && typeof said.id === "string" && Object.keys(said.columns).length > 0 ? said : null;
  } catch {
    return null;
  }
}
