// A storage in a file, for tests that outlive a process: what the browser's IndexedDB is to a page.

import { readFileSync, renameSync, writeFileSync } from "node:fs";

/** Only for one process at a time, which is what makes `replace` one step here. */
export class FileStorage {
  #path;
  #revision = 0;

  constructor(path) {
    this.#path = path;
  }

  async read() {
    try {
      return readFileSync(this.#path, "utf8");
    } catch (problem) {
      if (problem.code === "ENOENT") return null;
      throw problem;
    }
  }

  async replace(before, after) {
    if ((await this.read()) !== before) return false;
    writeFileSync(`${this.#path}.new`, after, { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
    return true;
  }

  remembered() {
    return this.#revision;
  }

  remember(revision) {
    this.#revision = revision;
  }
}
