/** The stylesheet of a view's shadow root; colours come from theme.js as custom properties. */
export const STYLE = `
:host { all: initial; display: block; position: relative; contain: content; min-height: 160px; }
:host([hidden]) { display: none; }
.frame {
  position: relative; width: 100%; height: 100%; overflow: hidden; container: atlas / inline-size;
  background: var(--atlas-background); color: var(--atlas-ink);
  font: 13px/1.45 Inter, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  text-align: left; -webkit-font-smoothing: antialiased; -webkit-text-size-adjust: 100%;
}
.frame.embedded { border: 1px solid var(--atlas-line); border-radius: 10px; }
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
.stage { position: absolute; inset: 0; outline: none; cursor: grab; touch-action: none; user-select: none; -webkit-user-select: none; }
.stage:active { cursor: grabbing; }
.stage.over { cursor: pointer; }
.stage:focus-visible { box-shadow: inset 0 0 0 2px var(--atlas-selected); border-radius: inherit; }
.stage canvas { position: absolute; left: 0; top: 0; width: 100%; height: 100%; display: block; }
.muted { color: var(--atlas-muted); }
.mono, kbd, .code, .panel-path { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
kbd { border: 1px solid var(--atlas-line); border-radius: 4px; padding: 0 5px; font-size: 11px; color: var(--atlas-muted); }
.icon { display: block; flex: none; }

button, input, select { font: inherit; color: inherit; margin: 0; }
button { background: none; border: 0; padding: 0; cursor: pointer; }
:is(button, input, select, .code, summary):focus-visible, [role="treeitem"]:focus-visible { outline: 2px solid var(--atlas-selected); outline-offset: 1px; }

.bar { position: absolute; left: 12px; right: 12px; top: 12px; display: flex; gap: 8px; align-items: flex-start; z-index: 4; pointer-events: none; }
.bar > * { pointer-events: auto; }
.bar > .grow { flex: 1; pointer-events: none; min-width: 0; }
.box {
  position: relative; display: flex; align-items: center; gap: 7px; height: 32px; padding: 0 10px; white-space: nowrap;
  background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 8px; color: var(--atlas-muted);
}
.box b { color: var(--atlas-ink); font-weight: 600; }
button.box:hover, .box button:hover, .box select:hover { color: var(--atlas-ink); }
button.box:hover, .box:focus-within { border-color: var(--atlas-control); }
.box button.step { border: 1px solid var(--atlas-line); border-radius: 5px; min-width: 22px; height: 20px; display: inline-grid; place-items: center; color: var(--atlas-muted); }
.box button.step:hover { border-color: var(--atlas-control); }
.box select { appearance: none; -webkit-appearance: none; background: transparent; border: 0; font-weight: 600; color: var(--atlas-ink); padding: 0 16px 0 0; height: 30px; max-width: 150px; text-overflow: ellipsis; cursor: pointer; }
.box select option { background: var(--atlas-surface); color: var(--atlas-ink); }
.box .caret { margin-left: -20px; pointer-events: none; }
.search input:focus-visible { outline: none; }
.search:focus-within { border-color: var(--atlas-selected); box-shadow: 0 0 0 1px var(--atlas-selected); }
.search { width: 300px; flex: 0 1 300px; min-width: 120px; padding-right: 7px; }
.search input { flex: 1; min-width: 0; width: 100%; border: 0; background: transparent; outline: none; color: var(--atlas-ink); height: 30px; padding: 0; }
.search input::placeholder { color: var(--atlas-muted); opacity: 1; }
.search input:placeholder-shown { text-overflow: ellipsis; }
.search input::-webkit-search-cancel-button { display: none; }
.search .count { font-size: 11.5px; }

.menu {
  position: absolute; top: 37px; left: 0; min-width: 200px; z-index: 6; padding: 6px; white-space: normal;
  background: var(--atlas-surface); color: var(--atlas-ink); border: 1px solid var(--atlas-line); border-radius: 10px;
  box-shadow: 0 8px 28px var(--atlas-shadow);
}
.menu.right { left: auto; right: 0; }
.menu button, .menu label { display: flex; align-items: center; gap: 8px; width: 100%; padding: 6px 8px; border-radius: 6px; text-align: left; cursor: pointer; color: var(--atlas-ink); }
.menu button:hover, .menu label:hover { background: var(--atlas-code); }
.menu .end { margin-left: auto; color: var(--atlas-muted); padding-left: 14px; font-variant-numeric: tabular-nums; }
.menu input { accent-color: var(--atlas-selected); margin: 0; }
.results { right: -1px; left: -1px; max-height: min(380px, 60cqh, 60vh); overflow: auto; padding: 4px; overscroll-behavior: contain; }
.results [role="option"] { padding: 5px 8px; border-radius: 6px; cursor: pointer; }
.results [role="option"][aria-selected="true"] { background: var(--atlas-codeLine); }
.results .path { display: block; font-size: 11px; color: var(--atlas-muted); overflow-wrap: anywhere; }
.results .hint { padding: 6px 8px; color: var(--atlas-muted); font-size: 12px; }
.results .hint code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11.5px; color: var(--atlas-ink); }

.map { position: absolute; left: 14px; top: 58px; width: 92px; height: 150px; z-index: 2; overflow: hidden; background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 8px; cursor: pointer; touch-action: none; }
.map.idle { opacity: 0; pointer-events: none; }
.map { transition: opacity 160ms; }
.map canvas { position: absolute; left: 0; top: 0; width: 100%; height: 100%; }
.map .window { position: absolute; left: 0; top: 0; border: 1.6px solid var(--atlas-selected); border-radius: 4px; pointer-events: none; transform-origin: 0 0; }

.panel {
  position: absolute; right: 12px; top: 56px; bottom: 12px; width: 348px; z-index: 3; padding: 12px 16px 16px; overflow: auto; overscroll-behavior: contain;
  background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 10px;
}
.panel.arriving { animation: arrive 180ms ease-out; pointer-events: none; }
@keyframes arrive { from { opacity: 0; transform: translateX(14px); } }
.panel-head { display: grid; grid-template-columns: 1fr auto; column-gap: 8px; }
.panel h2 { font-size: 15px; line-height: 1.35; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.panel h2 .muted { font-weight: 400; }
.panel h3 { font-size: 11px; letter-spacing: .05em; text-transform: uppercase; color: var(--atlas-muted); margin: 15px 0 5px; font-weight: 600; }
.panel p { margin: 4px 0; overflow-wrap: anywhere; }
.panel .strong { font-weight: 600; }
.panel-path { grid-column: 1 / -1; color: var(--atlas-muted); font-size: 12px; overflow-wrap: anywhere; }
.copyable { display: flex; align-items: flex-start; gap: 6px; }
.plain { color: var(--atlas-muted); border-radius: 5px; padding: 3px; flex: none; line-height: 0; }
.plain:hover { color: var(--atlas-ink); background: var(--atlas-code); }
.plain.done { color: var(--atlas-good); }
.copyable .copy { margin-top: -1px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px; margin: 0; }
dt { color: var(--atlas-muted); }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
dd.mono { font-size: 12px; line-height: 19px; }
.code { background: var(--atlas-code); border: 1px solid var(--atlas-line); border-radius: 8px; padding: 8px 0; font-size: 11.5px; line-height: 1.5; overflow: auto; }
.code > * { padding: 0 10px; min-width: max-content; white-space: pre; }
.code-place { color: var(--atlas-muted); }
.code-line.here { background: var(--atlas-codeLine); }
.code-number { display: inline-block; min-width: 3ch; margin-right: 10px; color: var(--atlas-muted); text-align: right; user-select: none; }
.code .copyable { min-width: 0; white-space: pre-wrap; overflow-wrap: anywhere; justify-content: space-between; }
.acts { display: flex; align-items: center; gap: 8px; margin: 3px 0; flex-wrap: wrap; }
.acts input { width: 58px; border: 1px solid var(--atlas-control); border-radius: 6px; background: var(--atlas-surface); padding: 2px 6px; }
.act { border: 1px solid var(--atlas-control); border-radius: 7px; padding: 2px 10px; color: var(--atlas-ink); }
.act:hover { background: var(--atlas-code); }
.failure { border-left: 3px solid var(--atlas-bad); background: var(--atlas-badFill); margin: 12px -16px 0; padding: 8px 16px; }
.panel .failure h3 { margin-top: 0; color: var(--atlas-bad); }
.notes { margin-top: 10px; padding: 6px 10px; border-radius: 8px; background: var(--atlas-hitFill); }
.histogram { display: flex; align-items: flex-end; gap: 2px; height: 42px; margin-bottom: 4px; }
.histogram i { flex: 1; max-width: 14px; background: var(--atlas-selected); opacity: .85; border-radius: 2px 2px 0 0; }
.ends { display: flex; justify-content: space-between; font-size: 11px; margin-bottom: 6px; }
.values p { margin: 4px 0; }
.heat { display: block; width: 100%; margin-top: 8px; border: 1px solid var(--atlas-line); border-radius: 4px; image-rendering: pixelated; }
.values .acts input { flex: 1; width: auto; min-width: 0; padding: 0; }

.bottom { position: absolute; left: 12px; bottom: 12px; right: 12px; z-index: 2; display: flex; gap: 8px; align-items: flex-end; flex-wrap: wrap; pointer-events: none; }
.frame.with-panel .bottom { right: 372px; }
.chip { pointer-events: auto; background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 8px; padding: 4px 10px; color: var(--atlas-muted); font-size: 11.5px; max-width: 100%; overflow-wrap: anywhere; }
.chip .good { color: var(--atlas-good); font-weight: 600; }
.chip .bad { color: var(--atlas-bad); font-weight: 600; }
.crumbs { pointer-events: auto; display: flex; align-items: center; flex-wrap: wrap; gap: 2px; padding: 2px 6px; max-width: 100%; }
.crumbs button { padding: 2px 5px; border-radius: 5px; color: var(--atlas-muted); overflow-wrap: anywhere; text-align: left; }
.crumbs button:hover { background: var(--atlas-code); color: var(--atlas-ink); }
.crumbs button[aria-current] { color: var(--atlas-ink); font-weight: 600; }
.legend { pointer-events: auto; padding: 6px 10px; display: flex; flex-wrap: wrap; gap: 3px 12px; max-width: 100%; }
.legend span { display: inline-flex; align-items: center; gap: 5px; }
.legend i { width: 10px; height: 10px; border-radius: 3px; flex: none; border: 1px solid var(--atlas-line); }

.banner {
  position: absolute; left: 120px; right: 12px; top: 56px; z-index: 3; display: flex; gap: 12px; align-items: flex-start; padding: 9px 12px;
  background: var(--atlas-badFill); border: 1px solid var(--atlas-bad); border-radius: 10px; max-width: 860px;
}
.frame.with-panel .banner { right: 372px; }
.banner .text { flex: 1; min-width: 0; max-height: 150px; overflow: auto; overflow-wrap: anywhere; text-wrap: pretty; }
.banner .strong { font-weight: 600; }
:is(.banner, .panel p) code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11.5px; font-weight: 600; }
.banner .icon { color: var(--atlas-bad); margin-top: 2px; width: 17px; height: 17px; }
.banner .remedy::before { content: "→ "; color: var(--atlas-bad); }
.banner .ways { display: flex; flex-direction: column; gap: 6px; align-items: stretch; }
.banner .steps { display: flex; align-items: center; justify-content: center; gap: 4px; white-space: nowrap; }
.banner .where { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11.5px; }
.banner .go { border: 1px solid var(--atlas-bad); color: var(--atlas-bad); font-weight: 600; border-radius: 7px; padding: 3px 10px; white-space: nowrap; }
.broken { position: absolute; inset: 0; z-index: 8; padding: 20px; overflow: auto; background: var(--atlas-background); }
.broken h2 { margin: 0 0 8px; font-size: 15px; color: var(--atlas-bad); }
.broken pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.busy { position: absolute; left: 50%; top: 60px; translate: -50% 0; z-index: 3; pointer-events: none; }

.help { position: absolute; inset: 0; z-index: 7; display: grid; place-items: center; background: color-mix(in srgb, var(--atlas-background) 60%, transparent); }
.help > div { background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 12px; box-shadow: 0 10px 40px var(--atlas-shadow); padding: 16px 20px; max-height: calc(100% - 24px); width: min(800px, calc(100% - 24px)); overflow: auto; outline: none; }
.help h2 { margin: 0 0 8px; font-size: 15px; display: flex; justify-content: space-between; align-items: center; gap: 20px; }
.help h3 { font-size: 11px; letter-spacing: .05em; text-transform: uppercase; color: var(--atlas-muted); margin: 14px 0 5px; }
.help .columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 0 28px; }
.help dl { gap: 5px 12px; }
.help dt { text-align: right; }

.outline { position: absolute; left: 12px; top: 56px; bottom: 12px; width: min(340px, calc(100% - 24px)); z-index: 5; overflow: auto; background: var(--atlas-surface); border: 1px solid var(--atlas-line); border-radius: 10px; padding: 8px; overscroll-behavior: contain; }
.outline:not(.shown):not(:focus-within), .unseen { position: absolute; width: 1px; height: 1px; padding: 0; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; border: 0; }
.outline h2 { font-size: 13px; margin: 2px 6px 6px; display: flex; justify-content: space-between; align-items: center; }
.outline [role="treeitem"] { padding: 3px 6px; border-radius: 6px; cursor: pointer; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.outline [role="treeitem"][aria-selected="true"] { background: var(--atlas-codeLine); }
.outline .twist { display: inline-block; width: 14px; color: var(--atlas-muted); }

@container atlas (max-width: 1020px) {
  .wide { display: none !important; }
  .search { flex-basis: 200px; }
}
.narrow { display: none; }
@container atlas (max-width: 920px) {
  .narrow { display: flex; }
  .bar .medium { display: none !important; }
  .bar.more { flex-wrap: wrap; }
  .bar.more::before { content: ""; order: 1; flex-basis: 100%; margin-top: -8px; }
  .bar.more > .medium { order: 2; display: flex !important; }
  .bar.more .step.medium { display: inline-grid !important; }
}
@container atlas (max-width: 700px) {
  .bar { left: 8px; right: 8px; top: 8px; gap: 6px; }
  .box { padding: 0 8px; gap: 5px; }
  .box select { max-width: 92px; }
  .search { flex: 1 1 90px; width: auto; min-width: 90px; }
  .map { display: none; }
  .panel { left: 8px; right: 8px; top: auto; bottom: 8px; width: auto; max-height: min(46%, 360px); }
  @keyframes arrive { from { opacity: 0; transform: translateY(14px); } }
  .bottom, .frame.with-panel .bottom { left: 8px; right: 8px; bottom: 8px; }
  .frame.with-panel .bottom { display: none; }
  .banner, .frame.with-panel .banner { left: 8px; right: 8px; top: 48px; }
  .outline { left: 8px; top: 48px; }
}
@media (prefers-reduced-motion: reduce) { *, *::before, *::after { animation: none !important; transition: none !important; } }
@media (forced-colors: active) { .box, .panel, .chip, .map { border-color: CanvasText; } }
`;
