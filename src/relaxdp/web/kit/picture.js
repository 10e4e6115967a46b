/** Pictures of a page as files. */

// What styles say of a drawing stands in the page's style sheets, which a file does not have.
const LOOKS = ["fill", "stroke", "stroke-width", "font-size", "font-family", "font-weight", "opacity", "text-anchor"];

/**
 * Return a drawing as a PNG file, with the colours that it has on the page.
 *
 * @param {SVGSVGElement} drawing
 * @param {number} width
 * @param {number} height
 * @param {string} [ground] the colour behind it
 * @returns {Promise<Blob>}
 */
export async function pngOf(drawing, width, height, ground = "#fff") {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const parts = [...drawing.querySelectorAll("*")];
  for (const [place, part] of [...copy.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(parts[place]);
    for (const name of LOOKS) {
      const look = style.getPropertyValue(name);
      if (look !== "") part.setAttribute(name, look); // a drawing that is not on the page says all of it itself
    }
    part.removeAttribute("class");
  }
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = ground;
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((done, fail) => {
    canvas.toBlob((file) => (file === null ? fail(new Error("the picture could not be made.")) : done(file)));
  });
}
