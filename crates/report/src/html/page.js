"use strict";
// Sorts, filters, searches, opens what links point to. Heat maps are in heat.js. Without this the page has all tables.
(() => {
const root = document.documentElement;
const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

// --- light and dark
const THEMES = ["system", "light", "dark"];
// A page from a file may have no storage.
const stored = (name, value) => {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* the choice holds for this visit */ }
  return null;
};
const themeButton = $("[data-do=theme]");
const setTheme = theme => {
  if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
  themeButton.textContent = `Theme: ${theme}`;
  document.dispatchEvent(new Event("wavetap-theme"));
};
const nextTheme = () => {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
  setTheme(next);
  stored("wavetap-theme", next);
};

// --- tables
// `1,024`, `37.5 %`, `0x1a40` as numbers; other text is no number.
const numberOf = cell => {
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const text = cell.textContent.trim().replace(/,/g, "");
  if (/^0x[0-9a-f]+$/i.test(text)) return Number(text);
  const match = /^[<>≥]?\s*([+-]?\d+(?:\.\d+)?)(?:$|\s|%)/.exec(text);
  return match ? Number(match[1]) : NaN;
};
// Numbers before text, and nothing last, whichever way it is sorted.
const compare = (a, b, sign) => {
  const [empty, other] = [a, b].map(cell => cell.textContent.trim() === "" && cell.dataset.v === undefined);
  if (empty || other) return empty - other;
  const [x, y] = [numberOf(a), numberOf(b)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
};
const sort = (table, head) => {
  const column = [...head.parentElement.children].indexOf(head);
  const was = head.getAttribute("aria-sort");
  // Numbers: the largest first.
  const descending = was ? was === "ascending" : head.classList.contains("n");
  for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    return x && y ? compare(x, y, sign) : (x ? -1 : 0) + (y ? 1 : 0);
  });
  body.append(...rows);
};
const FILTERED = 8;
const addFilter = (table, bar, costs) => {
  const what = table.caption?.textContent ?? table.dataset.name;
  const input = make("input", { type: "search", placeholder: "filter rows", ariaLabel: `Filter: ${what}` });
  const count = make("span", { role: "status" });
  const box = make("input", { type: "checkbox" });
  bar.append(input);
  if (costs) bar.append(make("label", {}, box, " only what costs"));
  bar.append(count);
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = words.length > 0 || box.checked;
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      const keep = words.every(word => text.includes(word)) && !(box.checked && !$(".bar", row));
      row.hidden = !keep;
      shown += keep;
    }
    table.parentElement.classList.toggle("filtered", on);
    count.textContent = on ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
  };
  input.addEventListener("input", apply);
  box.addEventListener("change", apply);
};
// --- columns
// Which are shown is kept by table and heading, for all kernels and later visits.
const CHOSEN = 6;
let chosen = {};
try { chosen = JSON.parse(stored("wavetap-columns") ?? "{}") ?? {}; } catch { /* what was stored is no choice */ }
const keyOf = (table, head) => `${table.dataset.name}: ${head.textContent.trim()}`;
const isShownColumn = (table, head) => chosen[keyOf(table, head)] ?? head.dataset.rare === undefined;
const applyColumns = table => {
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    if (at > 0) table.classList.toggle(`hide-${at + 1}`, !isShownColumn(table, head));
  });
};
const addColumns = (tables, bar, label) => {
  const heads = new Map();
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (at > 0 && head.textContent.trim() && !heads.has(keyOf(table, head))) heads.set(keyOf(table, head), [table, head]);
    });
  }
  if (tables.every(table => table.dataset.name === "source")) {
    // The text of the lines, which is headed by the name of the file.
    for (const table of tables) heads.delete(keyOf(table, table.tHead.rows[0].cells[1]));
  }
  const list = make("div");
  for (const [key, [table, head]] of heads) {
    const box = make("input", { type: "checkbox", checked: isShownColumn(table, head) });
    box.addEventListener("change", () => {
      chosen[key] = box.checked;
      stored("wavetap-columns", JSON.stringify(chosen));
      for (const other of $$(`table[data-name="${CSS.escape(table.dataset.name)}"][data-ready]`)) applyColumns(other);
    });
    list.append(make("label", {}, box, ` ${head.textContent.trim()}`));
  }
  const menu = make("details", { className: "choose" }, make("summary", {}, label), list);
  bar.append(menu);
};
document.addEventListener("click", event => {
  for (const menu of $$(".choose[open]")) if (!menu.contains(event.target)) menu.open = false;
});
const enhanceTable = table => {
  if (table.dataset.ready || !table.tHead) return;
  table.dataset.ready = "1";
  const listing = table.closest(".listing");
  const bar = make("div", { className: "filter" });
  if (listing || table.dataset.name === "source") applyColumns(table);
  if (listing) {
    const panes = listing.closest(".panes");
    addFilter(table, bar, true);
    const sources = $$(".src table", panes);
    if (sources.length) addColumns(sources, bar, "Columns of the source");
    addColumns([table], bar, "Columns of the code");
    panes.before(bar);
    return;
  }
  if (!table.classList.contains("data")) return;
  applyColumns(table);
  const isWide = table.tHead.rows[0].cells.length > CHOSEN;
  const isLong = table.tBodies[0].rows.length >= FILTERED;
  if (isLong) addFilter(table, bar, false);
  if (isWide) addColumns([table], bar, "Columns");
  if (isLong || isWide) table.parentElement.before(bar);
  for (const head of table.tHead.rows[0].cells) {
    const button = make("button", { type: "button", title: head.title });
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, head));
    head.append(button);
  }
};
// What is closed waits until it is opened: a thousand kernels have tens of thousands of heads.
const isShown = element => {
  for (let at = element.parentElement; at; at = at.parentElement) {
    if (at.tagName === "DETAILS" && !at.open) return false;
  }
  return true;
};
const enhance = from => {
  for (const table of $$("table", from)) if (isShown(table)) enhanceTable(table);
  for (const map of $$(".map", from)) if (isShown(map)) window.wavetapHeat(map, { $, make });
};

// --- links into what is closed
// What was not drawn before has no certain height: it may move once it is drawn.
const FRAMES = 8;
const scrollTo = (element, frames = FRAMES) => {
  element.scrollIntoView({ block: element.tagName === "TR" ? "center" : "start" });
  if (frames > 0) requestAnimationFrame(() => scrollTo(element, frames - 1));
};
const reveal = element => {
  for (let at = element; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
    if (at.hidden) at.hidden = false;
  }
};
const lineOf = row => row.id && $(".src", row.closest(".panes") ?? row)?.contains(row)
  ? row.id : $("a.l", row)?.hash.slice(1);
// Marks a source line and its instructions, and brings them into view in the other pane.
const mark = row => {
  const panes = row.closest(".panes");
  if (!panes) return;
  for (const old of $$("tr.mark")) old.classList.remove("mark");
  const line = lineOf(row);
  if (!line) return;
  const source = document.getElementById(line);
  const instructions = $$(`.asm a[href="#${CSS.escape(line)}"]`, panes).map(link => link.closest("tr"));
  for (const each of [source, ...instructions]) each?.classList.add("mark");
  const other = source?.contains(row) ? instructions[0] : source;
  const pane = other?.closest(".pane");
  if (pane && !pane.contains(row)) pane.scrollTop = other.offsetTop - pane.clientHeight / 3;
};
const follow = () => {
  for (const old of $$("tr.hit")) old.classList.remove("hit");
  const id = decodeURIComponent(location.hash.slice(1));
  const element = id && document.getElementById(id);
  if (!element) return;
  reveal(element);
  enhance(element.closest(".kernel") ?? element);
  if (element.tagName === "TR") {
    element.classList.add("hit");
    mark(element);
  }
  scrollTo(element);
};
document.addEventListener("click", event => {
  const link = event.target.closest?.("a[href^='#']");
  // The same place again changes no hash.
  if (link && link.hash === location.hash) { event.preventDefault(); follow(); return; }
  const row = event.target.closest?.(".panes tr");
  if (!link && row) mark(row);
});

// --- search
const search = $("#search");
const found = $("#found");
const kernels = $$(".kernel");
const texts = new Map();
const textOf = kernel => {
  let text = texts.get(kernel);
  if (text === undefined) {
    const parts = [$("summary h2", kernel), ...$$("table", kernel)].map(part => part.textContent);
    texts.set(kernel, text = parts.join("\n").toLowerCase());
  }
  return text;
};
let words = [];
let hits = null;
let hitAt = -1;
const applySearch = () => {
  words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  [hits, hitAt] = [null, -1];
  let shown = 0;
  const hiddenIds = new Set();
  for (const kernel of kernels) {
    const keep = words.every(word => textOf(kernel).includes(word));
    kernel.hidden = !keep;
    shown += keep;
    if (!keep) hiddenIds.add(`#${kernel.id}`);
  }
  for (const link of $$(":is(#overview, #imbalance) td.name a")) {
    link.closest("tr").hidden = hiddenIds.has(link.getAttribute("href"));
  }
  found.textContent = words.length ? `${shown} of ${kernels.length} kernels` : "";
};
const nextHit = step => {
  if (!words.length) return;
  hits ??= kernels.filter(kernel => !kernel.hidden).flatMap(kernel => {
    const rows = $$("tbody tr", kernel).filter(row => {
      const text = row.textContent.toLowerCase();
      return words.every(word => text.includes(word));
    });
    return rows.length ? rows : [kernel];
  });
  if (!hits.length) return;
  hitAt = (hitAt + step + hits.length) % hits.length;
  const hit = hits[hitAt];
  for (const old of $$("tr.hit")) old.classList.remove("hit");
  reveal(hit);
  hit.classList.add("hit");
  scrollTo(hit);
  found.textContent = `match ${hitAt + 1} of ${hits.length}`;
};
let timer = 0;
search.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(applySearch, 120);
});
search.addEventListener("keydown", event => {
  if (event.key === "Enter") {
    clearTimeout(timer);
    if (!hits) applySearch();
    nextHit(event.shiftKey ? -1 : 1);
  } else if (event.key === "Escape") {
    search.value = "";
    applySearch();
    search.blur();
  }
});

// --- keys
const nextKernel = step => {
  const all = kernels.filter(kernel => !kernel.hidden).map(kernel => $("summary", kernel));
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.focus();
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") search.focus();
  else if (event.key === "j") nextKernel(1);
  else if (event.key === "k") nextKernel(-1);
  else if (event.key === "n") nextHit(1);
  else if (event.key === "N") nextHit(-1);
  else if (event.key === "t") nextTheme();
  else return;
  event.preventDefault();
});

// --- start
document.addEventListener("toggle", event => { if (event.target.open) enhance(event.target); }, true);
themeButton.addEventListener("click", nextTheme);
for (const [name, open] of [["open", true], ["close", false]]) {
  $(`[data-do=${name}]`).addEventListener("click", () => {
    for (const kernel of kernels) if (!kernel.hidden) kernel.open = open;
  });
}
addEventListener("hashchange", follow);
// What is closed is printed, too.
addEventListener("beforeprint", () => {
  for (const part of $$("details:not(.choose)")) part.open = true;
});
const theme = stored("wavetap-theme");
if (THEMES.includes(theme)) setTheme(theme);
$(".tools").hidden = false;
enhance(document);
follow();
})();
