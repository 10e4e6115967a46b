/** A picture that somebody chose, as the small data: address that a campaign can carry. */

import { Problem } from "../kit/problem.js";

const MOST_BYTES = 16_000;
const SIZES = [192, 128, 96, 64, 48]; // pixels of its height, until it is small enough

/**
 * @param {File} file
 * @returns {Promise<string>}
 */
export async function logoOf(file) {
  const whole = await addressOf(file);
  if (file.type === "image/svg+xml" && file.size <= MOST_BYTES) return whole;
  const picture = new Image();
  picture.src = whole;
  try {
    await picture.decode();
  } catch {
    throw new Problem("This is no picture that the browser can read.");
  }
  for (const size of SIZES) {
    const canvas = document.createElement("canvas");
    const scale = Math.min(1, size / picture.height, (4 * size) / picture.width);
    [canvas.width, canvas.height] = [picture.width, picture.height].map((each) =>
      Math.max(1, Math.round(scale * each)),
    );
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const address = canvas.toDataURL("image/png");
    if ((3 * address.length) / 4 <= MOST_BYTES) return address;
  }
  throw new Problem("This picture stays too large. Choose a simpler one.");
}

/**
 * @param {Blob} file
 * @returns {Promise<string>}
 */
function addressOf(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(new Problem("The file could not be read."));
    reader.readAsDataURL(file);
  });
}
