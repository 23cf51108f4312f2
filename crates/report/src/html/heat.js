"use strict";
// Heat maps: what is visible of an array is drawn on two canvases, parts of it by level and its lines one by one.
window.wavetapHeat = (() => {
const STEPS = 8;
const ROW = 18;
const CELL = 20;
const VIEW = 324;
const MOST_PARTS = 1 << 20;

const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const step = (waves, most) => waves ? Math.min(STEPS, Math.ceil(waves * STEPS / Math.max(most, 1))) : 0;
const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

// Runs of equal lines: the first line, how many, the pattern, the instructions.
const decode = data => {
  const bytes = bytesOf(data.runs);
  const runs = { first: [], count: [], pattern: [], sites: [] };
  let at = 0;
  const number = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  for (let end = 0; at < bytes.length;) {
    const first = end + number();
    const count = number();
    runs.first.push(first);
    runs.count.push(count);
    runs.pattern.push(number());
    runs.sites.push(number());
    end = first + count;
  }
  const words = data.bytes / 4;
  const patterns = bytesOf(data.patterns);
  const used = new Uint8Array(patterns.length / (words + 1));
  for (let pattern = 0; pattern < used.length; pattern++) {
    for (let word = 0; word < words; word++) used[pattern] += patterns[pattern * (words + 1) + word] > 0;
  }
  const last = runs.first.length - 1;
  return { runs, patterns, used, words, begin: runs.first[0], end: runs.first[last] + runs.count[last] };
};

// Parts of 16^level lines each: the most waves, lines that are accessed, words that are used.
const partsOf = (map, level) => {
  const size = 16 ** level;
  const begin = Math.floor(map.begin / size);
  const length = Math.ceil(map.end / size) - begin;
  const parts = { size, begin, length, waves: new Uint8Array(length), lines: new Float64Array(length),
    used: new Float64Array(length), run: new Int32Array(length).fill(-1) };
  for (let run = 0; run < map.runs.first.length; run++) {
    const pattern = map.runs.pattern[run];
    const end = map.runs.first[run] + map.runs.count[run];
    for (let line = map.runs.first[run]; line < end;) {
      const part = Math.floor(line / size) - begin;
      const next = Math.min((part + begin + 1) * size, end);
      parts.waves[part] = Math.max(parts.waves[part], map.patterns[pattern * (map.words + 1) + map.words]);
      parts.lines[part] += next - line;
      parts.used[part] += (next - line) * map.used[pattern];
      if (parts.run[part] < 0) parts.run[part] = run;
      line = next;
    }
  }
  return parts;
};

// A box that scrolls over more rows than there are elements: a canvas stays in view and draws what is there.
const view = (make, label, draw) => {
  const canvas = make("canvas", { ariaHidden: "true" });
  const space = make("div");
  const box = make("div", { className: "view", tabIndex: 0, role: "application", ariaLabel: label }, canvas, space);
  const self = { box, canvas, rows: 0, width: 0, height: VIEW };
  self.draw = () => {
    const height = Math.min(self.height, self.rows * ROW);
    const width = Math.max(self.width, box.clientWidth);
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    space.style.height = `${self.rows * ROW - height}px`;
    box.style.height = `${height + 14}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const top = Math.floor(box.scrollTop / ROW);
    const style = getComputedStyle(box);
    // A canvas does not know what light-dark() is: an element does.
    const known = new Map();
    const colour = name => {
      if (!known.has(name)) {
        space.style.color = `var(${name})`;
        known.set(name, getComputedStyle(space).color);
      }
      return known.get(name);
    };
    context.font = `11px ${style.getPropertyValue("--mono")}`;
    context.textBaseline = "middle";
    const end = Math.min(self.rows, top + Math.ceil(height / ROW) + 1);
    draw(context, { top, end, width, colour, text: style.color });
  };
  self.row = event => Math.floor(box.scrollTop / ROW) + Math.floor(event.offsetY / ROW);
  self.show = row => {
    const top = row * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + self.height) box.scrollTop = top - self.height / 3;
  };
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; self.draw(); });
  });
  return self;
};

const cell = (context, x, y, width, waves, most, colours) => {
  const shade = step(waves, most);
  if (shade) {
    context.fillStyle = colours(`--h${shade}`);
    context.fillRect(x, y, width - 1, ROW - 1);
  }
  context.fillStyle = shade === 0 ? colours("--muted") : colours(shade < 6 ? "--dark" : "--light");
  context.textAlign = "center";
  context.fillText(shade ? waves : "·", x + width / 2, y + ROW / 2);
};

return (element, { $, make }) => {
  if (element.dataset.ready) return;
  element.dataset.ready = "1";
  const data = JSON.parse($("script", element).textContent);
  const map = decode(data);
  const { runs, patterns, words } = map;
  const hex = line => `0x${(line * data.bytes).toString(16)}`;
  const wavesOf = (run, word) => patterns[runs.pattern[run] * (words + 1) + word];
  let chosen = 0;
  let top = 0;
  while ((map.end - map.begin) / 16 ** top > 64) top++;
  let level = Math.min(top, 1);
  while ((map.end - map.begin) / 16 ** level > MOST_PARTS) level++;
  const finest = level > 1 ? level : 0;
  let parts = partsOf(map, level);

  // --- parts by level
  let columns = 1;
  const overview = view(make, `${data.array}: parts of the array; arrow keys choose one`, (context, area) => {
    for (let row = area.top; row < area.end; row++) {
      const y = (row - area.top) * ROW;
      context.fillStyle = area.text;
      context.textAlign = "left";
      context.fillText(hex((parts.begin + row * columns) * parts.size), 4, y + ROW / 2);
      for (let column = 0; column < columns && row * columns + column < parts.length; column++) {
        const part = row * columns + column;
        const x = 120 + column * CELL;
        cell(context, x, y, CELL, parts.waves[part], data.waves, area.colour);
        if (parts.run[part] >= 0 && partOf(chosen) === part) {
          context.strokeStyle = area.text;
          context.strokeRect(x + .5, y + .5, CELL - 2, ROW - 2);
        }
      }
    }
  });
  overview.height = 8 * ROW;
  const partOf = run => Math.floor(runs.first[run] / parts.size) - parts.begin;
  const said = make("p", { className: "facts", role: "status" });
  const coarser = make("button", { type: "button", textContent: "Coarser" });
  const finer = make("button", { type: "button", textContent: "Finer" });
  const size = make("span", { className: "facts" });
  const setLevel = to => {
    level = Math.max(finest, Math.min(top, to));
    parts = partsOf(map, level);
    [coarser.disabled, finer.disabled] = [level >= top, level <= finest];
    size.textContent = ` each cell is ${counted(parts.size, "line", "lines")} of ${data.bytes} bytes`;
    layout();
    overview.show(Math.floor(partOf(chosen) / columns));
    overview.draw();
  };
  coarser.addEventListener("click", () => setLevel(level + 1));
  finer.addEventListener("click", () => setLevel(level - 1));
  const layout = () => {
    columns = Math.max(8, Math.floor((element.clientWidth - 140) / CELL / 8) * 8);
    overview.rows = Math.ceil(parts.length / columns);
    overview.width = 124 + Math.min(columns, parts.length) * CELL;
  };

  // --- lines one by one, equal ones in one row
  const list = view(make, `${data.array}: lines; arrow keys choose one`, (context, area) => {
    for (let run = area.top; run < area.end; run++) {
      const y = (run - area.top) * ROW;
      if (run === chosen) {
        context.fillStyle = area.colour("--mark");
        context.fillRect(0, y, area.width, ROW);
      }
      context.fillStyle = area.text;
      context.textAlign = "left";
      context.fillText(hex(runs.first[run]), 4, y + ROW / 2);
      context.textAlign = "right";
      context.fillText(runs.count[run] > 1 ? `× ${runs.count[run].toLocaleString("en")}` : "", 178, y + ROW / 2);
      cell(context, 190, y, CELL + 4, wavesOf(run, words), data.waves, area.colour);
      for (let word = 0; word < words; word++) {
        cell(context, 226 + word * CELL, y, CELL, wavesOf(run, word), data.waves, area.colour);
      }
    }
  });
  list.rows = runs.first.length;
  list.width = 230 + words * CELL;

  const detail = make("div", { className: "detail", role: "status" });
  const choose = run => {
    chosen = Math.max(0, Math.min(runs.first.length - 1, run));
    const all = Array.from({ length: words }, (_, word) => wavesOf(chosen, word));
    const used = map.used[runs.pattern[chosen]];
    const lines = runs.count[chosen];
    const where = lines > 1 ? `${counted(lines, "line", "lines")} from ${hex(runs.first[chosen])} to ` +
      `${hex(runs.first[chosen] + lines)}, each` : `Line ${hex(runs.first[chosen])}`;
    const text = `${where}: ${counted(wavesOf(chosen, words), "wave", "waves")}, ${used} of ${words} words used ` +
      `(waves on each word: ${all.join(" ")}). Accessed by `;
    detail.replaceChildren(make("span", { textContent: text }));
    const sites = data.sites[runs.sites[chosen]] ?? [];
    sites.forEach((address, at) => {
      const row = document.getElementById(`${data.kernel}-${address}`);
      const link = row ? make("a", { href: `#${row.id}`, textContent: address }) : address;
      const instruction = row ? ` ${$(".i", row).textContent}` : "";
      const place = data.places[address] ? ` (${data.places[address]})` : "";
      detail.append(at ? "; " : "", link, instruction + place);
    });
    list.show(chosen);
    list.draw();
    overview.show(Math.floor(partOf(chosen) / columns));
    overview.draw();
  };
  list.canvas.addEventListener("click", event => choose(list.row(event)));
  const partAt = event => overview.row(event) * columns + Math.floor((event.offsetX - 120) / CELL);
  overview.canvas.addEventListener("click", event => {
    const run = parts.run[partAt(event)];
    if (run >= 0) choose(run);
  });
  overview.canvas.addEventListener("mousemove", event => {
    const part = partAt(event);
    if (!(parts.run[part] >= 0)) return;
    const share = 100 * parts.used[part] / (parts.lines[part] * words);
    const from = hex((parts.begin + part) * parts.size);
    said.textContent = `From ${from}: ${counted(parts.lines[part], "line", "lines")} accessed, up to ` +
      `${counted(parts.waves[part], "wave", "waves")}, ${share.toFixed(1)} % of their words used`;
  });
  const keys = (step, page) => event => {
    const by = { ArrowDown: page, ArrowUp: -page, ArrowRight: step, ArrowLeft: -step, PageDown: 10 * page,
      PageUp: -10 * page, Home: -Infinity, End: Infinity }[event.key];
    if (by !== undefined) event.preventDefault();
    return by;
  };
  list.box.addEventListener("keydown", event => {
    const by = keys(1, 1)(event);
    if (by !== undefined) choose(chosen + by);
  });
  overview.box.addEventListener("keydown", event => {
    const by = keys(1, columns)(event);
    if (by === undefined) return;
    let part = Math.max(0, Math.min(parts.length - 1, partOf(chosen) + by));
    // To the next part that is accessed, in the direction of the key.
    while (parts.run[part] < 0) part += Math.sign(by);
    if (parts.run[part] >= 0) choose(parts.run[part]);
  });

  // --- what the colours mean
  const legend = make("div", { className: "legend" }, "waves:");
  for (let shade = 1, low = 1; shade <= STEPS; shade++) {
    let high = low;
    while (high < data.waves && step(high + 1, data.waves) <= shade) high++;
    if (step(low, data.waves) !== shade || low > data.waves) continue;
    legend.append(make("span", { className: `h${shade}`, textContent: low === high ? low : `${low}–${high}` }));
    low = high + 1;
  }
  element.append(
    legend,
    make("div", {}, coarser, " ", finer, size),
    overview.box,
    said,
    make("p", { className: "facts" }, "Address, equal lines in a row, waves on the line and on its words:"),
    list.box,
    detail,
  );
  const redraw = () => { layout(); overview.draw(); list.draw(); };
  setLevel(level);
  choose(0);
  list.box.scrollTop = 0;
  addEventListener("resize", redraw);
  document.addEventListener("wavetap-theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
};
})();
