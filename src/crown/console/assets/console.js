"use strict";
// Everything is drawn from three things: the overview (once), frames (one a second), and pages of rows (when asked for).
const token = new URLSearchParams(location.search).get("token") || "";
const state = { overview: null, view: null, tab: null, latest: null, history: [], rows: { offset: 0, search: "" }, ended: "" };
const $ = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const fill = (element, ...children) => element.replaceChildren(...children.filter((child) => child != null));
const count = (value) => value == null ? "–" : Math.round(value).toLocaleString("en-US");
function compact(value) {
  if (value == null) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6]]) if (value >= size) return (value / size).toFixed(2) + " " + unit;
  return value >= 100 || Number.isInteger(value) ? count(value) : value.toFixed(1);
}
function bytes(value) {
  if (value == null) return "–";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= size) return (value / size).toFixed(1) + " " + unit;
  return count(value) + " B";
}
const percent = (part) => part >= 0.995 ? "100%" : part < 0.01 && part > 0 ? "<1%" : Math.round(part * 100) + "%";
const seconds = (value) => value == null ? "–" : value < 10 ? value.toFixed(2) + " s" : value.toFixed(1) + " s";
const plural = (number, word) => count(number) + " " + word + (number === 1 ? "" : "s");
const about = () => state.overview.views.find((view) => view.name === state.view);
const frame = () => state.latest && state.latest.frame.views[state.view];
const rates = () => state.latest && state.latest.rates[state.view];
const isPipeline = () => state.overview.kind === "spark";
const ask = async (path, query) => (await fetch(path + "?" + new URLSearchParams({ token, ...query }))).json();

// ---- figures at the top

function sparkline(values, kind) {
  const known = values.filter((value) => value != null);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 30");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  if (known.length < 2 && kind !== "bars") return svg;
  const most = Math.max(...known, 1e-9), span = Math.max(values.length - 1, 1);
  if (kind === "bars") {
    const width = 100 / Math.max(values.length, 24);
    svg.innerHTML = values.map((value, place) => {
      const height = Math.max(1, 29 * (value || 0) / most);
      return `<rect x="${place * width}" y="${30 - height}" width="${width * 0.7}" height="${height}"/>`;
    }).join("");
    return svg;
  }
  const points = values.map((value, place) => [100 * place / span, 29 - 27 * (value || 0) / most]);
  const line = points.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L");
  svg.innerHTML = `<path class="area" d="M0 30L${line}L100 30Z"/><path class="line" d="M${line}"/>`;
  return svg;
}

function gauge(part) {
  return make("div", { class: "gauge" + (part > 1 ? " over" : "") },
    make("i", { style: `width:${Math.max(1.5, Math.min(100, part * 100)).toFixed(1)}%` }));
}

function kpi(label, value, unit, detail, drawing) {
  return make("div", { class: "kpi" }, make("div", { class: "label" }, label),
    make("div", { class: "value" }, value, unit ? make("small", {}, unit) : null),
    make("div", { class: "detail" }, detail || ""), drawing ? make("div", { class: "draw" }, drawing) : null);
}

function series(name) {
  return state.history.slice(-120).map((point) => (point.views[state.view] || {})[name]);
}

function effortCard(effort, bound, measured, drawing) {
  const cost = about().guarantee ? about().guarantee.update : "";
  let detail = measured;
  if (bound != null) detail = `at most ${bound.toFixed(0)}, by ${cost}`;
  else if (cost) detail = cost === "O(λ)" ? "O(λ), by the stream's λ" : `guaranteed: ${cost}`;
  return kpi("Counters per update", effort == null ? "–" : effort.toFixed(2), "", detail,
    bound != null && effort != null ? gauge(effort / bound) : drawing || sparkline(series("effort")));
}

function stateCard(size) {
  const budget = state.overview.budget;
  return kpi("State", bytes(size), "", budget ? `${percent(size / budget)} of ${bytes(budget)}` : "no budget set",
    budget ? gauge(size / budget) : sparkline(series("bytes")));
}

function drawFigures() {
  const now = frame(), rate = rates();
  if (!now) return;
  if (isPipeline()) {
    const batches = now.history, last = batches[batches.length - 1];
    const per = (name) => batches.slice(-40).map((batch) => batch[name] / Math.max(batch.seconds, 1e-3));
    fill($("kpis"),
      kpi("Updates per second", last ? compact(last.updates / Math.max(last.seconds, 1e-3)) : "–", "", `${count(now.updates)} in ${plural(now.batches, "batch").replace("batchs", "batches")}`, sparkline(per("updates"), "bars")),
      kpi("Changes out per second", last ? compact(last.deltas / Math.max(last.seconds, 1e-3)) : "–", "", `${count(now.deltas)} so far`, sparkline(per("deltas"), "bars")),
      kpi("Batch time", last ? seconds(last.seconds) : "–", "", last ? `lag ${last.lag}` : "", sparkline(batches.slice(-40).map((batch) => batch.seconds), "bars")),
      effortCard(now.effort, about().bound, "", sparkline(batches.slice(-40).map((batch) => batch.effort), "bars")), stateCard(now.bytes),
      kpi("Rejected changes", count(now.rejects), "", about().quarantines ? "quarantined, with the reason" : "invalid ones fail a batch"));
    return;
  }
  const effort = rate && rate.effort != null ? rate.effort : now.updates ? now.counter_changes / now.updates : null;
  fill($("kpis"),
    kpi("Rows in the view", now.rows == null ? "not counted" : compact(now.rows), "", now.rows == null ? "counting takes long here" : about().columns.length + " columns", null),
    kpi("Updates per second", rate ? compact(rate.updates) : "–", "", `${count(now.updates)} so far`, sparkline(series("updates"))),
    kpi("Changes out per second", rate && rate.deltas != null ? compact(rate.deltas) : "–", "", now.deltas == null ? "" : `${count(now.deltas)} while watched`, sparkline(series("deltas"))),
    effortCard(effort, about().bound, rate && rate.effort != null ? "in the last second" : "since the start"),
    stateCard(now.bytes),
    kpi("Rejected changes", count(now.rejects), "", about().quarantines ? "quarantined, with the reason" : "invalid ones raise"));
}

// ---- the tree

function drawTree() {
  const now = frame(), rate = rates(), tree = $("tree");
  if (!now) return;
  const legend = `↑ rows per second that enter or leave${isPipeline() ? ", in the last batch" : ""}; bars: share of the work`;
  $("tree-note").textContent = Object.keys(now.nodes).length ? [legend, now.note].filter(Boolean).join("; ") : now.note;
  const names = nodeNames();
  for (const [mark, node] of Object.entries(now.nodes)) {
    const group = tree.querySelector(`[data-node="${CSS.escape(mark)}"]`);
    if (!group) continue;
    group.querySelector(".figures").textContent = `${compact(node.rows)} ${node.rows === 1 ? "row" : "rows"} · ${bytes(node.bytes)}`;
    group.querySelector("title").textContent =
      `${names[mark]}\n${count(node.rows)} rows, ${count(node.semi_join_rows)} of them with a match in every child\n` +
      `${count(node.keys)} keys towards the parent\n${bytes(node.bytes)}\n${count(node.updates)} changes of its table`;
    const speed = rate ? rate.nodes[mark] || {} : {};
    const bar = group.querySelector(".work");
    bar.setAttribute("width", (bar.dataset.full * (speed.work || 0)).toFixed(1));
    const edge = tree.querySelector(`[data-edge="${CSS.escape(mark)}"]`);
    const label = tree.querySelector(`[data-rate="${CSS.escape(mark)}"]`);
    if (edge) {
      edge.classList.toggle("busy", speed.moves > 0);
      edge.style.strokeWidth = speed.moves > 0 ? Math.min(6, 1.6 + Math.log10(1 + speed.moves) * 0.7) : "";
    }
    if (label) {
      label.classList.toggle("busy", speed.moves > 0);
      label.textContent = speed.moves == null ? "" : "↑ " + compact(speed.moves) + "/s";
    }
  }
}

function nodeNames() {
  const named = (node) => node.source && !node.source.startsWith("$") && node.source !== node.name ? `${node.name} · ${node.source}` : node.name;
  return Object.fromEntries(about().nodes.map((node) => [node.mark, named(node)]));
}

function bars(rows) {
  return make("div", { class: "bars" }, ...rows.map(([name, amount, part]) => make("div", { class: "row" },
    make("span", { title: name }, name), make("span", { class: "amount" }, amount),
    make("div", { class: "track" }, make("i", { style: `width:${(Math.min(1, part) * 100).toFixed(1)}%` })))));
}

function drawWork() {
  const now = frame(), rate = rates();
  const nodes = now ? Object.entries(now.nodes) : [];
  $("work-panel").hidden = !nodes.length;
  if (!nodes.length) return;
  const names = nodeNames();
  const busy = rate && Object.values(rate.nodes).some((node) => node.work > 0);
  const total = nodes.reduce((sum, [, node]) => sum + node.counter_changes, 0) || 1;
  const part = (mark, node) => busy ? (rate.nodes[mark] || {}).work || 0 : node.counter_changes / total;
  const sorted = nodes.filter(([mark]) => mark in names).map(([mark, node]) => [names[mark], part(mark, node)]).sort((a, b) => b[1] - a[1]);
  fill($("work"), bars(sorted.slice(0, 8).map(([name, share]) => [name, percent(share), share])),
    make("p", { class: "muted", style: "margin:10px 0 0;font-size:12.5px" }, busy ? `of the counters changed in the last ${isPipeline() ? "batch" : "second"}` : "of all counters changed so far"));
  const hot = now.hot_keys;
  $("hot-panel").hidden = !hot.length;
  fill($("hot"), bars(hot.map((key) => [`${names[key.node] || key.node}: ${key.key}`, `${compact(key.rows)} rows, ${percent(key.share)}`, key.share])),
    hot.length ? make("p", { class: "muted", style: "margin:10px 0 0;font-size:12.5px" },
      `The first has ${compact(Math.round(hot[0].rows / hot[0].average))} times the rows of an average key. When it appears or disappears, ${plural(hot[0].parents, "row")} above may change.`) : null);
}

function drawGuarantee() {
  const card = about().guarantee;
  $("guarantee-panel").hidden = !card;
  if (!card) return;
  const good = card.update === "O(1)";
  fill($("guarantee"),
    make("div", { class: "promise" }, make("b", {}, card.update), make("span", { class: "badge" + (good ? " good" : "") }, good ? "constant per update" : "per update")),
    make("div", { class: "muted", style: "font-size:13px" }, card.why),
    make("dl", { class: "pairs" }, ...[["class", card.class], ["height", card.height], ["state", card.space], ["next row", card.delay]]
      .filter(([, value]) => value != null && value !== "").flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])),
    card.card.length ? make("details", {}, make("summary", {}, "Other streams, and why not better"),
      make("ul", {}, ...card.card.map((line) => make("li", {}, `${line.profile}: ${line.update}`)), ...card.notes.map((note) => make("li", {}, note)))) : null);
}

// ---- cells and recovery

function drawCells() {
  const now = frame(), cells = now ? now.cells : [];
  $("cells-panel").hidden = cells.length < 2;
  if (cells.length >= 2) {
    const most = Math.max(...cells.map((cell) => cell.updates), 1);
    const mean = cells.reduce((sum, cell) => sum + cell.updates, 0) / cells.length || 1;
    $("cells-note").textContent = isPipeline() ? "in the last batch" : "since the start";
    const lines = cells.map((cell) => [cell.name, [`${compact(cell.updates)} updates`, cell.seconds != null ? seconds(cell.seconds) : null, bytes(cell.bytes)].filter(Boolean).join(" · "), cell.updates / most]);
    const spread = about().cells;
    fill($("cells"), bars(lines), make("dl", { class: "pairs" },
      make("dt", {}, "busiest"), make("dd", {}, `${(most / mean).toFixed(2)} × the average`),
      ...(spread || []).flatMap((line) => [make("dt", {}, `rows of ${line.table}`), make("dd", {}, `in ${line.copies} of ${cells.length} cells`)])));
  }
  const start = state.overview.recovery;
  $("recovery-panel").hidden = !start;
  if (start) fill($("recovery"), make("div", {}, start.text),
    make("dl", { class: "pairs" }, ...start.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
}

// ---- tabs

function table(data, rowClass) {
  return make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...data.columns.map((name, place) => make("th", { scope: "col", class: data.numeric[place] ? "number" : "" }, heading(name))))),
    make("tbody", {}, ...data.rows.map((row) => make("tr", { class: rowClass ? rowClass(row) : "" }, ...row.map((value, place) => cell(value, data.numeric[place])))))));
}
const heading = (name) => ({ _change_type: "change", _multiplicity: "copies" })[name] || name;
const cell = (value, numeric) => value == null ? make("td", { class: "null" + (numeric ? " number" : "") }, "NULL") : make("td", { class: numeric ? "number" : "" }, value);
const empty = (title, text) => make("div", { class: "empty" }, make("b", {}, title), text);

async function loadRows() {
  const asked = { ...state.rows }, view = state.view;
  const answer = await ask("/rows", { view, offset: asked.offset, search: asked.search });
  if (state.tab !== "rows" || view !== state.view || asked.offset !== state.rows.offset || asked.search !== state.rows.search) return;
  const size = state.overview.page, body = $("rows-body");
  if (!body) return;
  const rows = answer.table ? answer.table.rows.length : 0;
  $("rows-note").textContent = answer.table ? [rows ? `Rows ${count(asked.offset + 1)} to ${count(asked.offset + rows)}` : "", answer.note].filter(Boolean).join(". ") : "";
  $("rows-back").disabled = !asked.offset;
  $("rows-next").disabled = !answer.more;
  $("rows-back").onclick = () => { state.rows.offset = Math.max(0, asked.offset - size); loadRows(); };
  $("rows-next").onclick = () => { state.rows.offset = asked.offset + size; loadRows(); };
  if (!answer.table) fill(body, empty("No rows to show", answer.note));
  else if (!rows) fill(body, asked.search ? empty("Nothing found", `No row contains “${asked.search}”.`) : empty("The view is empty", "Rows appear here as soon as the tables have matching rows."));
  else fill(body, table(answer.table));
}

function showRows() {
  let wait;
  const search = (event) => { clearTimeout(wait); wait = setTimeout(() => { state.rows = { offset: 0, search: event.target.value.trim() }; loadRows(); }, 250); };
  fill($("tab"), make("div", { class: "tools" },
    make("input", { type: "search", id: "rows-search", placeholder: isPipeline() ? "Search by key or value" : "Search, or look up: column = value", "aria-label": "Search rows", value: state.rows.search, oninput: search }),
    make("span", { class: "note", id: "rows-note" }), make("button", { class: "plain", id: "rows-refresh", onclick: loadRows }, "Refresh"),
    make("button", { class: "plain", id: "rows-back", disabled: true }, "Back"), make("button", { class: "plain", id: "rows-next", disabled: true }, "Next")),
    make("div", { id: "rows-body" }));
  loadRows();
}

function showDeltas() {
  const recent = (frame() || {}).recent || [];
  if (!recent.length) return fill($("tab"), empty("No changes yet", "What enters and leaves the view appears here while this page is open."));
  const columns = ["change", ...recent[0].table.columns.slice(1).map(heading)], numeric = recent[0].table.numeric;
  const rows = [];
  for (const delta of recent) {
    const at = new Date(delta.time * 1000).toLocaleTimeString("en-GB");
    const more = delta.count - delta.table.rows.length;
    rows.push(make("tr", { class: "gap" }, make("td", { colspan: columns.length }, `${at} · ${plural(delta.count, "row")} changed${more > 0 ? `, the first ${delta.table.rows.length} shown` : ""}`)));
    for (const row of delta.table.rows) rows.push(make("tr", { class: row[0] }, make("td", {}, row[0] === "insert" ? "+ insert" : "− delete"), ...row.slice(1).map((value, place) => cell(value, numeric[place + 1]))));
    if (rows.length > 40) break;
  }
  fill($("tab"), make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...columns.map((name, place) => make("th", { scope: "col", class: numeric[place] ? "number" : "" }, name)))), make("tbody", {}, ...rows))));
}

function showRejected() {
  const now = frame() || {};
  if (now.rejected && now.rejected.rows.length) return fill($("tab"), table(now.rejected));
  const taken = now.rejects ? empty("Already taken", `${plural(now.rejects, "change")} rejected so far; the program has read and removed them with rejected().`) : null;
  fill($("tab"), taken || empty("No change was rejected", about().quarantines ? "Invalid changes are quarantined and listed here, with the reason and their position." : "Invalid changes raise an error instead: on_invalid is \"raise\"."));
}

function showBatches() {
  const batches = ((frame() || {}).history || []).slice(-30).reverse();
  if (!batches.length) return fill($("tab"), empty("No batch yet", "A line appears for each batch that had changes."));
  const data = { columns: ["batch", "started", "updates", "result changes", "time", "updates/s", "lag", "state", "rejected"], numeric: [true, true, true, true, true, true, true, true, true],
    rows: batches.map((batch) => [count(batch.number), batch.time, count(batch.updates), count(batch.deltas), seconds(batch.seconds), compact(Math.round(batch.updates / Math.max(batch.seconds, 1e-3))), batch.lag, bytes(batch.bytes), count(batch.rejected)]) };
  fill($("tab"), table(data));
}

function showQuery() {
  const words = /('(?:[^']|'')*')|\b(select|distinct|from|where|group|by|having|order|limit|offset|join|inner|left|right|full|outer|cross|natural|on|using|as|and|or|not|in|exists|is|null|like|between|case|when|then|else|end|union|all|except|intersect|with|count|sum|avg|min|max)\b/gi;
  const pre = make("pre", { class: "sql" }), sql = about().sql;
  let end = 0;
  for (const match of sql.matchAll(words)) {
    pre.append(sql.slice(end, match.index), match[1] ? match[0] : make("b", {}, match[0]));
    end = match.index + match[0].length;
  }
  pre.append(sql.slice(end));
  fill($("tab"), pre);
}

const TABS = { batches: ["Batches", showBatches], rows: ["Rows", showRows], deltas: ["Changes", showDeltas], rejected: ["Rejected", showRejected], query: ["Query", showQuery] };
function tabNames() {
  return isPipeline() ? ["batches", ...(about().readable ? ["rows"] : []), "rejected", "query"] : ["rows", "deltas", "rejected", "query"];
}

function drawTabs() {
  const rejects = (frame() || {}).rejects;
  fill($("tabs"), ...tabNames().map((name) => make("button", { role: "tab", id: "tab-" + name, "aria-controls": "tab", "aria-selected": String(state.tab === name), onclick: () => openTab(name) },
    TABS[name][0], name === "rejected" && rejects ? make("span", { class: "count bad" }, count(rejects)) : null)));
}

function openTab(name) {
  state.tab = name;
  drawTabs();
  TABS[name][1]();
}

// ---- many views

function drawGraph() {
  const { views, tables } = state.overview;
  $("graph").hidden = views.length < 2;
  if (views.length < 2) return;
  // Tables are in column 0; a view is one column to the right of the last thing that it reads.
  const names = new Map(), column = new Map(tables.map((item) => [item.name.toLowerCase(), 0]));
  tables.forEach((item) => names.set(item.name.toLowerCase(), item.name));
  views.forEach((item) => names.set(item.name.toLowerCase(), item.name));
  for (let round = 0; round < views.length; round++)
    for (const view of views) column.set(view.name.toLowerCase(), 1 + Math.max(0, ...view.reads.map((read) => column.get(read.toLowerCase()) || 0)));
  const longest = Math.max(...[...names.values()].map((name) => Math.min(name.length, 24)));
  const wide = Math.max(90, longest * 7.4 + 30), step = wide + 56;
  const places = new Map(), used = [];
  for (const [key, level] of column) {
    used[level] = (used[level] || 0) + 1;
    places.set(key, [level * step + 1, used[level] * 46 - 38]);
  }
  const height = Math.max(...used.filter(Boolean)) * 46 - 6, width = used.length * step - 54;
  const text = (value) => value.length > 24 ? value.slice(0, 23) + "…" : value;
  const escaped = (value) => value.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const parts = [];
  for (const view of views) for (const read of view.reads) {
    const from = places.get(read.toLowerCase()), to = places.get(view.name.toLowerCase());
    if (from && to) parts.push(`<path d="M${from[0] + wide} ${from[1] + 15}C${from[0] + wide + 32} ${from[1] + 15} ${to[0] - 32} ${to[1] + 15} ${to[0]} ${to[1] + 15}" fill="none" stroke="var(--muted)" stroke-width="1.3" opacity="0.6"/>`);
  }
  let sharing = false;
  for (const [key, [x, y]] of places) {
    const view = views.find((item) => item.name.toLowerCase() === key), current = view && view.name === state.view;
    const shared = (view && view.shared) || [];
    sharing = sharing || shared.length > 0;
    const title = shared.length ? `<title>shares a part with ${escaped(shared.join(", "))}</title>` : "";
    const mark = shared.length ? " •" : "";
    parts.push(`<g${view ? ` data-open="${escaped(view.name)}" style="cursor:pointer"` : ""}>${title}<rect x="${x}" y="${y}" width="${wide}" height="30" rx="${view ? 15 : 6}" fill="var(--${current ? "accent-soft" : "soft"})" stroke="var(--${view ? "accent" : "rule"})"/><text x="${x + wide / 2}" y="${y + 20}" text-anchor="middle" fill="var(--ink)" font-size="12.5">${escaped(text(names.get(key)) + mark)}</text></g>`);
  }
  const box = $("graph").querySelector(".scroll");
  box.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Tables and the views that read them">${parts.join("")}</svg>` +
    (sharing ? '<p class="muted" style="margin:8px 0 0;font-size:12.5px">• shares a part with another view: it is stored and computed once</p>' : "");
  box.querySelectorAll("[data-open]").forEach((group) => group.addEventListener("click", () => openView(group.dataset.open)));
}

// ---- all of it

function drawFrame() {
  drawFigures();
  drawTree();
  drawWork();
  drawCells();
  drawTabs();
  if (["deltas", "rejected", "batches"].includes(state.tab)) TABS[state.tab][1]();
}

function openView(name) {
  state.view = name;
  state.rows = { offset: 0, search: "" };
  const view = about();
  $("tree").innerHTML = view.svg;
  fill($("views"), ...state.overview.views.map((other) => make("button", { "aria-current": other.name === name ? "true" : null, onclick: () => openView(other.name) }, other.name)));
  drawGraph();
  drawGuarantee();
  openTab(tabNames().includes(state.tab) ? state.tab : tabNames()[0]);
  if (state.latest) drawFrame();
}

function setStatus(kind, text) {
  $("status").className = "status " + kind;
  $("status").querySelector("span").textContent = text;
}

function listen() {
  const events = new EventSource("/events?" + new URLSearchParams({ token }));
  events.onmessage = (event) => {
    state.latest = JSON.parse(event.data);
    state.history.push(state.latest.point);
    if (state.history.length > 180) state.history.shift();
    const ended = state.latest.frame.ended, now = frame();
    if (ended) setStatus("ended", ended);
    else setStatus("live", (now && now.status) || "live");
    drawFrame();
    document.body.dataset.frames = String(Number(document.body.dataset.frames || 0) + 1);
  };
  events.addEventListener("ended", () => { events.close(); setStatus("ended", "the console was closed"); });
  events.onerror = () => { if (events.readyState !== EventSource.CLOSED) setStatus("lost", "connection lost, trying again"); else setStatus("ended", "the process has ended"); };
}

async function begin() {
  state.overview = await ask("/overview", {});
  const { title, kind, views, history, version } = state.overview;
  state.history = history;
  document.title = `${title} · Crown`;
  $("title").textContent = title;
  $("version").textContent = version || "";
  $("kind").textContent = kind === "spark" ? "Spark pipeline" : views.length > 1 ? plural(views.length, "view") : "embedded view";
  $("views").hidden = views.length < 2;
  if (!views.length) return fill(document.querySelector("main"), empty("No views yet", "Create a view, then reload this page."));
  openView(views[0].name);
  listen();
}

begin().catch(() => setStatus("ended", "the console does not answer"));
