/** Entry of the bundle: what exported pages (`mountPage`) and the notebook widget (`render`) import. */
export { mountPage } from "./page.js";
export { render } from "./widget.js";
