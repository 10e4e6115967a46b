/** MD5, which WebCrypto lacks: it places words in Bloom filters as Google's RAPPOR does, and protects nothing. */

const ROTATIONS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Array.from({ length: 64 }, (_, i) => Math.floor(2 ** 32 * Math.abs(Math.sin(i + 1))));
const START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];

/**
 * @param {Uint8Array} message
 * @returns {Uint8Array} 16 bytes
 */
export function md5(message) {
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n, true);
  let state = START;
  for (let offset = 0; offset < padded.length; offset += 64) {
    const added = rounds(state, view, offset);
    state = state.map((word, i) => (word + added[i]) | 0);
  }
  const digest = new DataView(new ArrayBuffer(16));
  for (const [i, word] of state.entries()) digest.setUint32(4 * i, word, true);
  return new Uint8Array(digest.buffer);
}

/**
 * @param {number[]} state
 * @param {DataView} view
 * @param {number} offset
 */
function rounds(state, view, offset) {
  let [a, b, c, d] = state;
  for (let i = 0; i < 64; i += 1) {
    const [mixed, place] = [
      [(b & c) | (~b & d), i],
      [(d & b) | (~d & c), (5 * i + 1) % 16],
      [b ^ c ^ d, (3 * i + 5) % 16],
      [c ^ (b | ~d), (7 * i) % 16],
    ][i >> 4];
    const sum = (a + mixed + SINES[i] + view.getUint32(offset + 4 * place, true)) | 0;
    const turn = ROTATIONS[4 * (i >> 4) + (i % 4)];
    [a, b, c, d] = [d, (b + ((sum << turn) | (sum >>> (32 - turn)))) | 0, b, c];
  }
  return [a, b, c, d];
}
