/**
 * Where a device's state lies. A storage holds one text and replaces it in one step, or not at all:
 *
 *     read()                  the text, or null where there is none
 *     replace(before, after)  true when `after` is durable; false, and nothing done, where the text is not `before`
 *     remembered()            the highest revision that a second, independent place knows of; 0 where it knows none
 *     remember(revision)      tell that place
 *
 * Two tabs that read one text and both want to replace it cannot both succeed, and that is all the locking there is: a
 * draw is a pure function, so whoever comes second reads again and starts over.
 */

import { RelaxdpError } from "./errors.js";

/**
 * @typedef {object} DeviceStorage
 * @property {() => Promise<string | null>} read
 * @property {(before: string | null, after: string) => Promise<boolean>} replace
 * @property {() => number} remembered
 * @property {(revision: number) => void} remember
 */

/**
 * For tests, and for pages that shall forget everything when they are closed.
 *
 * @implements {DeviceStorage}
 */
export class MemoryStorage {
  /** @type {string | null} */
  #text = null;
  #revision = 0;

  /** The text, or null where there is none. */
  async read() {
    return this.#text;
  }

  /**
   * True when `after` is durable; false, and nothing done, where the text is not `before`.
   *
   * @param {string | null} before
   * @param {string} after
   */
  async replace(before, after) {
    if (this.#text !== before) return false;
    this.#text = after;
    return true;
  }

  /** The highest revision that a second, independent place knows of; 0 where it knows none. */
  remembered() {
    return this.#revision;
  }

  /**
   * Tell that place how far the state has come.
   *
   * @param {number} revision
   */
  remember(revision) {
    this.#revision = revision;
  }
}

/** @typedef {Pick<typeof globalThis, "indexedDB"> & Partial<Pick<typeof globalThis, "localStorage" | "navigator">>} Scope */

const TABLE = "device";
const PLACE = "state";

/**
 * The state in IndexedDB, and in localStorage how far it had come: where the one was deleted and the other was not,
 * that shows. Whoever deletes both has a browser that knows nothing, and it is a new device.
 *
 * @implements {DeviceStorage}
 */
export class BrowserStorage {
  #name;
  #scope;

  /**
   * @param {string} [name] one device for each name; a person should have one
   * @param {Scope} [scope] where `indexedDB` and `localStorage` are
   */
  constructor(name = "relaxdp device", scope = globalThis) {
    this.#name = name;
    this.#scope = scope;
  }

  /** The text, or null where there is none. */
  async read() {
    return this.#transact("readonly", (table, done) => {
      const request = table.get(PLACE);
      request.onsuccess = () => done(request.result ?? null);
    });
  }

  /**
   * True when `after` is durable; false, and nothing done, where the text is not `before`.
   *
   * @param {string | null} before
   * @param {string} after
   */
  async replace(before, after) {
    return this.#transact("readwrite", (table, done) => {
      const request = table.get(PLACE);
      request.onsuccess = () => {
        const same = (request.result ?? null) === before;
        if (same) table.put(after, PLACE);
        done(same);
      };
    });
  }

  /** The highest revision that a second, independent place knows of; 0 where it knows none. */
  remembered() {
    const text = this.#marker()?.getItem(this.#name) ?? "";
    return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
  }

  /**
   * Tell that place how far the state has come.
   *
   * @param {number} revision
   */
  remember(revision) {
    try {
      this.#marker()?.setItem(this.#name, String(revision));
    } catch {
      // Full: then nothing is noticed when the state goes, as in browsers without this place.
    }
  }

  /** Ask the browser not to clear this on its own when space is short. Some ask the person. Returns what it said. */
  async persist() {
    return (await this.#scope.navigator?.storage?.persist?.()) ?? false;
  }

  /** @returns {Storage | null} */
  #marker() {
    try {
      return this.#scope.localStorage ?? null;
    } catch {
      return null; // a browser that keeps nothing for this page throws
    }
  }

  /**
   * Run one transaction and wait until what it wrote is on disk. Nothing inside may wait for anything but the table:
   * a transaction ends where it has nothing more to do.
   *
   * @template Found
   * @param {"readonly" | "readwrite"} mode
   * @param {(table: IDBObjectStore, done: (found: Found) => void) => void} work
   * @returns {Promise<Found>}
   */
  async #transact(mode, work) {
    const database = await this.#open();
    try {
      return await new Promise((resolve, reject) => {
        /** @type {Found} */
        let found;
        const transaction = database.transaction(TABLE, mode, { durability: "strict" });
        transaction.oncomplete = () => resolve(found);
        transaction.onabort = () => reject(unusable("this browser could not write down what was to be kept"));
        work(transaction.objectStore(TABLE), (value) => {
          found = value;
        });
      });
    } finally {
      database.close();
    }
  }

  /** @returns {Promise<IDBDatabase>} */
  #open() {
    return new Promise((resolve, reject) => {
      const refuse = () =>
        reject(unusable("this browser keeps nothing for this page (a private window, or site data is blocked)"));
      try {
        const request = this.#scope.indexedDB.open(this.#name, 1);
        request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
        request.onsuccess = () => resolve(request.result);
        request.onerror = refuse;
      } catch {
        refuse();
      }
    });
  }
}

/** @param {string} what */
function unusable(what) {
  return new RelaxdpError("device_file_error", `${what}. Nothing was sent.`, { reason: "unusable" });
}
