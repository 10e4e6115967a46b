/** A colour that somebody chose, made readable: its hue stays, its lightness gives way. Nothing touches a page. */

/** @typedef {[number, number, number]} Colour red, green and blue, from 0 to 255 */

const READABLE = 4.5;
/** A little more than is asked for, since what is written has whole numbers. */
const SAFE = READABLE + 0.05;
const STEPS = 64;

/** The surfaces on which an accent is written, and what is written on a soft one: as in style.css. */
const SCHEMES = {
  light: { surfaces: ["#ffffff", "#f4f5f7", "#eceff3"], text: "#16191d", towards: "#000000" },
  dark: { surfaces: ["#191d23", "#101317", "#232932"], text: "#e8ebef", towards: "#ffffff" },
};

/**
 * Return the colours of a page whose accent is the given one, by the names of its style.
 *
 * @param {string} chosen like #1a5fb4
 * @param {"light" | "dark"} scheme
 * @returns {Record<string, string>}
 */
export function accentsOf(chosen, scheme) {
  const { surfaces, text, towards } = SCHEMES[scheme];
  const grounds = surfaces.map(read);
  const [surface] = grounds;
  const accent = shaded(read(chosen), read(towards), (colour) =>
    grounds.every((ground) => contrast(colour, ground) >= SAFE),
  );
  const onAccent = [read("#ffffff"), read("#0b0d10")].sort(
    (one, other) => contrast(other, accent) - contrast(one, accent),
  )[0];
  // Pressed and pointed at, it goes on in the direction in which what is written on it stays readable.
  const away = mixed(
    accent,
    contrast(read("#ffffff"), accent) > contrast(read("#0b0d10"), accent) ? read("#000000") : read("#ffffff"),
    0.25,
  );
  const soft = shaded(
    mixed(surface, accent, 0.18),
    surface,
    (colour) => contrast(colour, read(text)) >= 7 && contrast(colour, accent) >= READABLE - 1.5,
  );
  return {
    "--accent": write(accent),
    "--accent-strong": write(away),
    "--on-accent": write(onAccent),
    "--accent-soft": write(soft),
  };
}

/**
 * How far apart two colours are for whoever reads one on the other, from 1 to 21, as WCAG 2 counts it.
 *
 * @param {Colour} one
 * @param {Colour} other
 */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/**
 * @param {string} text
 * @returns {Colour}
 */
export const read = (text) =>
  /** @type {Colour} */ ([1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16)));

/** @param {Colour} colour */
const write = (colour) => `#${colour.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

/** @param {Colour} colour */
function luminance(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * Return the first colour on the way to another one that is fine; the last one is.
 *
 * @param {Colour} from
 * @param {Colour} towards
 * @param {(colour: Colour) => boolean} fine
 */
function shaded(from, towards, fine) {
  for (let step = 0; step < STEPS; step += 1) {
    const colour = whole(mixed(from, towards, step / STEPS));
    if (fine(colour)) return colour;
  }
  return towards;
}

/**
 * @param {Colour} one
 * @param {Colour} other
 * @param {number} share of the other
 * @returns {Colour}
 */
const mixed = (one, other, share) => /** @type {Colour} */ (one.map((part, i) => part + share * (other[i] - part)));

/** @param {Colour} colour @returns {Colour} */
const whole = (colour) => /** @type {Colour} */ (colour.map(Math.round));
