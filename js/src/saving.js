/** Files made by the browser: the picture as SVG or PNG, the document as JSON. */
import { paint } from "./paint.js";
import { buildSpatial } from "./spatial.js";

/** Larger canvases fail in some browsers (16,384 px a side in Chromium and Firefox, less area in Safari). */
const MOST_PX = 8192;
const MARGIN = 24;

/**
 * @param {Document} document
 * @param {string} name of the file
 * @param {Blob} content
 */
export function download(document, name, content) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The download has taken hold of the content when the next task runs.
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/**
 * The whole scene as a PNG, at twice its size where that is possible.
 *
 * @param {Document} document
 * @param {Omit<import("./paint.js").Frame, "spatial"|"transform"|"width"|"height"|"ratio"|"boxAlpha"|"routeAlpha">} look
 * @param {import("./types.js").Scene} scene
 * @returns {Promise<Blob>}
 */
export function scenePng(document, look, scene) {
  const width = scene.width + 2 * MARGIN;
  const height = scene.height + 2 * MARGIN;
  const ratio = Math.min(2, MOST_PX / width, MOST_PX / height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) return Promise.reject(new Error("this browser gives no canvas"));
  const transform = { x: MARGIN, y: MARGIN, k: 1 };
  paint(context, {
    ...look,
    spatial: buildSpatial(scene),
    transform,
    width,
    height,
    ratio,
    boxAlpha: null,
    routeAlpha: null,
  });
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error(`no PNG of ${canvas.width} × ${canvas.height} px`))),
      "image/png",
    );
  });
}

/**
 * @param {string} title of a model
 * @returns {string} safe as the name of a file
 */
export function fileStem(title) {
  return `torchatlas_${title.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 80)}`;
}

/**
 * @param {Document} document
 * @param {ShadowRoot} root
 * @param {string} text
 * @returns {Promise<boolean>} whether the text is on the clipboard
 */
export async function copyText(document, root, text) {
  try {
    await document.defaultView?.navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No permission, as in sandboxed frames: the older way needs none.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    root.append(area);
    area.select();
    const done = document.execCommand?.("copy") ?? false;
    area.remove();
    return done;
  }
}
