/** The look of the map that a notebook keeps. Pure. */
import { PALETTES } from "./theme.js";

/** @returns {string} CSS for its shadow root */
export function liteStyle() {
  const variables = Object.values(PALETTES).map(
    ({ name, background, surface, line, control, ink, muted, card, selected }) =>
      `.map[data-theme=${name}]{color-scheme:${name};--background:${background};--surface:${surface};--line:${line};` +
      `--control:${control};--ink:${ink};--muted:${muted};--card:${card};--selected:${selected}}`,
  );
  return `${variables.join("")}
.map{border:1px solid var(--line);border-radius:8px;overflow:hidden;background:var(--background);color:var(--ink);
font:12px/1.4 system-ui,sans-serif}
.bar{display:flex;flex-wrap:wrap;gap:4px;align-items:center;padding:5px 8px;background:var(--surface);
border-bottom:1px solid var(--line)}
button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--control);border-radius:5px;
padding:1px 8px;min-width:26px;cursor:pointer}
button:hover{border-color:var(--selected)}
button:focus-visible,g:focus-visible{outline:2px solid var(--selected);outline-offset:1px}
.facts{flex:1 1 200px;margin-left:6px;color:var(--muted);white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.stage{max-height:480px;overflow:auto;cursor:grab;user-select:none;-webkit-user-select:none}
.stage:active{cursor:grabbing}
svg{display:block;margin:0 auto}
g[role=button]{cursor:pointer;outline:none}
g:focus-visible>:first-child{stroke:var(--selected);stroke-width:2.4}`;
}
