"use strict";
// Uses the page as a reader does, and writes what happened into it as JSON.
addEventListener("load", async () => {
const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const make = name => document.createElement(name);
const sleep = time => new Promise(done => setTimeout(done, time));
// What happens after some frames, at the latest after so many.
const until = async holds => {
  for (let tries = 0; tries < 40 && !holds(); tries++) await sleep(50);
};
const checks = [];
const check = (name, ok, got = "") => checks.push({ name, ok: Boolean(ok), got: String(got) });
const isVisible = element => element.checkVisibility({ visibilityProperty: true });
const isInView = element => {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.bottom > 0 && box.top < innerHeight;
};
const isOpenAbove = element => {
  for (let at = element.parentElement; at; at = at.parentElement) {
    if (at.tagName === "DETAILS" && !at.open) return false;
  }
  return true;
};
const press = (key, target = document.activeElement ?? document.body, more = {}) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const input = (field, text) => {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const facts = {};

// --- how it is before anything was done
facts.openAtFirst = $$(".kernel[open]").length;
facts.kernels = $$(".kernel").length;
facts.scheme = getComputedStyle(document.body).backgroundColor;
check("the tools are shown by the script", !$(".tools").hidden);
check("nothing is loaded", performance.getEntriesByType("resource").length === 0);
check("no element loads", $$("img, link, iframe, object, embed, script[src], [background]").length === 0);
if (location.hash) {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  check("the page opens at what its address names", target && isOpenAbove(target) && isInView(target), location.hash);
}

// --- anchors
const ids = $$("[id]").map(element => element.id);
check("ids are unique", new Set(ids).size === ids.length);
const broken = $$("a[href]").map(link => link.getAttribute("href"))
  .filter(href => !href.startsWith("#") || !document.getElementById(decodeURIComponent(href.slice(1))));
check("every link leads to something on the page", broken.length === 0, broken.slice(0, 5));

// --- names for those who do not see it
const nameless = [
  ...$$("table.data").filter(table => !table.caption?.textContent),
  ...$$("svg[role=img]").filter(svg => !svg.getAttribute("aria-label")),
  ...$$("[role=region], [role=application]").filter(box => !box.ariaLabel),
  ...$$("input").filter(field => !field.ariaLabel && !field.labels.length),
  ...$$("button").filter(button => !button.textContent.trim()),
];
check("tables, drawings, regions, fields and buttons have names", nameless.length === 0, nameless[0]?.outerHTML);

// --- sorting
const numberIn = text => Number(/-?[\d,]+(\.\d+)?/.exec(text)?.[0].replaceAll(",", ""));
const indexOf = table =>
  [...table.tHead.rows[0].cells].findIndex(head => /Executions|Instructions|Waves|New/.test(head.textContent));
const column = (table, at) => [...table.tBodies[0].rows].map(row => numberIn(row.cells[at].textContent));
const isOrdered = (values, sign) => values.every((value, at) => at === 0 || sign * (value - values[at - 1]) >= 0);
for (const details of $$("details")) details.open = true;
await sleep(50);
const sortable = $$("table.data").find(table => {
  const at = indexOf(table);
  return at >= 0 && new Set(column(table, at)).size > 2;
});
if (sortable) {
  const at = indexOf(sortable);
  const head = sortable.tHead.rows[0].cells[at];
  const before = sortable.tBodies[0].rows.length;
  $("button", head).click();
  check("a first click sorts numbers, the largest first", isOrdered(column(sortable, at), -1), column(sortable, at));
  check("the head says so", head.ariaSort === "descending");
  $("button", head).click();
  check("a second click turns the order", isOrdered(column(sortable, at), 1) && head.ariaSort === "ascending");
  check("sorting loses no row", sortable.tBodies[0].rows.length === before);
}

// --- filters
const filter = $(".filter input[type=search]");
if (filter) {
  const bar = filter.parentElement;
  const table = $("table", bar.nextElementSibling);
  const rows = $(".asm table", bar.nextElementSibling)?.tBodies[0].rows ?? table.tBodies[0].rows;
  const operation = $(".i", rows[rows.length - 1])?.textContent.split(" ")[0];
  // A word of the first row that not every row has.
  const others = [...rows[0].cells].slice(1).flatMap(cell => cell.textContent.trim().split(" ")).filter(Boolean);
  const words = [...rows[0].cells[0].textContent.split(" ").slice(0, 2).reverse(), ...others];
  const isInAll = word => [...rows].every(row => row.textContent.toLowerCase().includes(word.toLowerCase()));
  const word = operation ?? words.find(word => !isInAll(word)) ?? words[0];
  input(filter, word);
  const wrong = [...rows].filter(row => row.hidden === row.textContent.toLowerCase().includes(word.toLowerCase()));
  const shown = [...rows].filter(row => !row.hidden).length;
  check("a filter shows the rows with its words", wrong.length === 0 && shown > 0 && shown < rows.length, word);
  check("it says how many", $("[role=status]", bar).textContent.startsWith(`${shown} of ${rows.length} `));
  input(filter, "");
  check("an empty filter shows all", [...rows].every(row => !row.hidden));
}

// --- source and its columns
const sourceTable = $(".src table");
if (sourceTable) {
  const pane = sourceTable.closest(".pane").getBoundingClientRect();
  const costs = [...sourceTable.tBodies[0].rows].find(row => $(".bar", row));
  const [text, number] = [costs.cells[1], costs.cells[2]].map(cell => cell.getBoundingClientRect());
  check("the text of a line and its first number are beside each other, without scrolling",
    text.left >= pane.left && text.width >= 300 && number.left >= text.right - 1 && number.right <= pane.right + 1,
    `${text.left} ${text.width} ${number.right} ${pane.right}`);
}
const menu = $$(".choose").find(menu => $("summary", menu).textContent === "Columns of the code");
if (menu) {
  const table = $(".asm table", menu.closest(".part"));
  const isShownAt = at => [table.tHead.rows[0], $("tr[id]", table)].every(row =>
    getComputedStyle(row.cells[at]).display !== "none");
  const headOf = label => [...table.tHead.rows[0].cells].findIndex(head => head.textContent === label.textContent.trim());
  const labels = $$("label", menu);
  const before = labels.map(label => $("input", label).checked === isShownAt(headOf(label)));
  for (const label of labels) $("input", label).click();
  const after = labels.map(label => $("input", label).checked === isShownAt(headOf(label)));
  check("a menu shows and hides columns", labels.length > 3 && [...before, ...after].every(Boolean),
    `${before} ${after}`);
  check("not all columns are shown at first", labels.some(label => $("input", label).checked));
  for (const label of labels) $("input", label).click();
}

// --- links into what is closed
const kinds = {
  kernel: ".kernel:last-of-type", instruction: ".asm tr[id]", "source line": ".src tr[id]", "heat map": ".array",
};
for (const [kind, selector] of Object.entries(kinds)) {
  const target = $$(selector).at(-1);
  if (!target) continue;
  for (const details of $$("details")) details.open = false;
  location.hash = "";
  await sleep(20);
  scrollTo(0, 0);
  location.hash = `#${target.id}`;
  const isRow = target.tagName === "TR";
  await until(() => isOpenAbove(target) && isInView(target) && (!isRow || target.classList.contains("hit")));
  check(`a link opens its ${kind}`, isOpenAbove(target) && isInView(target),
    `${target.id} ${isOpenAbove(target)} ${JSON.stringify(target.getBoundingClientRect())}`);
  if (isRow) check(`and marks the ${kind}`, target.classList.contains("hit") && $$("tr.hit").length === 1);
}
const sourceRow = $(".src tr[id]");
if (sourceRow) {
  for (const details of $$("details")) details.open = true;
  $(".i", sourceRow).click();
  const expected = $$(`.asm a[href="#${sourceRow.id}"]`).map(link => link.closest("tr"));
  const marked = $$(".asm tr.mark");
  check("a click on a source line marks its instructions", expected.length > 0 && expected.length === marked.length &&
    expected.every(row => marked.includes(row)), `${expected.length} ${marked.length}`);
}

// --- search and keys
document.activeElement?.blur();
press("/", document.body);
check("/ goes to the search", document.activeElement === $("#search"));
const asked = $(".kernel:last-of-type .asm .i")?.textContent.split(" ")[0] ?? $$(".kernel h2").at(-1)?.textContent;
if (asked) {
  input($("#search"), asked);
  await sleep(300);
  const wrong = $$(".kernel").filter(kernel => {
    const text = [$("summary h2", kernel), ...$$("table", kernel)].map(part => part.textContent).join("\n");
    return kernel.hidden === text.toLowerCase().includes(asked.toLowerCase());
  });
  check("the search leaves the kernels with its words", wrong.length === 0, asked);
  press("Enter", $("#search"));
  const hit = $("tr.hit, .kernel.hit");
  await until(() => isInView(hit));
  const text = hit.textContent.toLowerCase();
  check("Enter shows the first match", isInView(hit) && text.includes(asked.toLowerCase()), asked);
  input($("#search"), "no such words 31337");
  await sleep(300);
  check("what is nowhere hides all kernels", $$(".kernel").every(kernel => kernel.hidden));
  press("Escape", $("#search"));
  check("Escape shows all again", $$(".kernel").every(kernel => !kernel.hidden));
  check("and leaves the search", document.activeElement !== $("#search"));
  press("j", document.body);
  check("j goes to the first kernel", document.activeElement === $(".kernel > summary"));
}
const focusable = $$("a[href], button, input, summary, [tabindex]").filter(isVisible).slice(0, 300);
check("no tab index changes the order", $$("[tabindex]").every(element => element.tabIndex <= 0));
const unseen = focusable.filter(element => {
  element.focus({ preventScroll: true, focusVisible: true });
  const style = getComputedStyle(element);
  return !element.disabled && !(parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none");
});
check("focus is visible", unseen.length === 0 && focusable.length > 5, unseen[0]?.outerHTML);

// --- heat maps
const inked = canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) colours.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  return colours.size;
};
for (const details of $$("details")) details.open = true;
await sleep(100);
// The one with most runs of lines.
const map = $$(".map").sort((a, b) => $("script", b).textContent.length - $("script", a).textContent.length)[0];
if (map) {
  const [overview, list] = $$(".view", map);
  check("both canvases are drawn", inked($("canvas", overview)) > 2 && inked($("canvas", list)) > 2);
  const [marked, swatch] = [$("canvas", list).getContext("2d").getImageData(1, 1, 1, 1).data, make("i")];
  swatch.style.color = "var(--mark)";
  map.append(swatch);
  check("the chosen line is marked", getComputedStyle(swatch).color === `rgb(${[...marked].slice(0, 3).join(", ")})`);
  swatch.remove();
  const detail = $(".detail", map);
  const addresses = [...$$("a", detail)].map(link => link.getAttribute("href"));
  check("a line names the instructions that accessed it", addresses.length > 0 &&
    addresses.every(href => document.getElementById(href.slice(1))), addresses);
  // What the page's data says, read anew.
  const data = JSON.parse($("script", map).textContent);
  const size = data.bytes / 4 + 1;
  const patterns = atob(data.patterns);
  const first = atob(data.runs);
  let at = 0;
  const number = () => {
    const digits = /^[\x80-\xff]*[^]/.exec(first.slice(at))[0];
    at += digits.length;
    return [...digits].reduceRight((value, digit) => value * 128 + (digit.charCodeAt(0) & 127), 0);
  };
  const [line, , pattern, sites] = [number(), number(), number(), number()];
  const waves = patterns.charCodeAt(pattern * size + size - 1);
  check("it says the line's address and waves", detail.textContent.includes(`0x${(line * data.bytes).toString(16)}`) &&
    detail.textContent.includes(`: ${waves} wave`), detail.textContent);
  const expected = data.sites[sites].map(site => `#${data.kernel}-${site}`);
  check("and the instructions of the data", addresses.join() === expected.join(), addresses);
  const said = detail.textContent;
  press("ArrowDown", list);
  if (at < first.length) check("arrow keys go to the next line", detail.textContent !== said);
  const [coarser, finer] = $$("button", map);
  const level = $(".facts", coarser.parentElement).textContent;
  const other = coarser.disabled ? finer : coarser;
  if (!other.disabled) {
    other.click();
    check("levels change what a cell is", $(".facts", coarser.parentElement).textContent !== level);
  }
}

// --- contrast, in both schemes
const parse = colour => (/rgba?\(([^)]+)\)/.exec(colour)?.[1] ?? "0,0,0,0").split(/[ ,/]+/).map(Number);
const over = ([r, g, b, a = 1], below) => [r, g, b].map((value, at) => a * value + (1 - a) * below[at]);
const behind = element => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    layers.push(colour);
    if ((colour[3] ?? 1) === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
};
const luminance = colour => {
  const [r, g, b] = colour.map(value => value / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};
const texts = () => $$("body *").filter(element => !/^(SCRIPT|STYLE|NOSCRIPT|TITLE)$/i.test(element.tagName) &&
  [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()) && element.getClientRects().length);
facts.contrast = {};
for (const scheme of ["light", "dark"]) {
  const root = document.documentElement;
  for (let tries = 0; tries < 3 && root.dataset.theme !== scheme; tries++) $("[data-do=theme]").click();
  check(`the switch sets ${scheme}`, root.dataset.theme === scheme);
  const seen = texts();
  const weak = [];
  let least = Infinity;
  for (const element of seen) {
    const style = getComputedStyle(element);
    const below = behind(element.closest("svg") ?? element);
    const colour = over(parse(element.closest("svg") ? style.fill : style.color), below);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const value = ratio(colour, below);
    least = Math.min(least, value);
    if (value < (large ? 3 : 4.5)) weak.push(`${value.toFixed(2)} ${element.outerHTML.slice(0, 80)}`);
  }
  facts.contrast[scheme] = { texts: seen.length, least };
  check(`text has contrast in the ${scheme} scheme`, weak.length === 0 && seen.length > 10, weak.slice(0, 8));
  const swatch = document.body.appendChild(make("i"));
  const named = name => {
    swatch.style.color = `var(${name})`;
    return parse(getComputedStyle(swatch).color);
  };
  const shades = [1, 2, 3, 4, 5, 6, 7, 8];
  const steps = shades.map(shade => ratio(named(`--h${shade}`), named(shade < 6 ? "--dark" : "--light")));
  swatch.remove();
  check(`numbers on the colours of heat maps have contrast (${scheme})`, steps.every(value => value >= 4.5), steps);
}
check("no script of another ran", window.pwned === undefined);
check("nothing went wrong", wentWrong.length === 0, wentWrong.slice(0, 5).join("\n"));
const out = make("pre");
out.id = "probe-result";
out.textContent = JSON.stringify({ checks, facts });
document.body.append(out);
});
