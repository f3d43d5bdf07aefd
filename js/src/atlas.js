/** Entry of the bundle: what exported pages import by name (`mountPage`) and anywidget as the default (`render`). */
import { render } from "./widget.js";

export { mountPage } from "./page.js";
export default { render };
