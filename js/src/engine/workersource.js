/**
 * The code of the layout worker (engine/worker.js, bundled to one classic script) as text, or null where the sources run
 * unbundled and layout stays on the calling thread. js/build.mjs puts the text here: a worker made from a Blob is the only
 * kind that also runs from file:// and in sandboxed frames.
 *
 * @type {string | null}
 */
export const workerSource = null;
