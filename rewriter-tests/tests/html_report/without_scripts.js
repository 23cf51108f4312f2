"use strict";
// The page in a frame that runs no scripts, as a browser shows it that has them switched off.
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const all = selector => [...page.querySelectorAll(selector)];
  const isShown = element => element.checkVisibility() && element.getBoundingClientRect().height > 0;
  const count = selector => all(selector).filter(isShown).length;
  const closed = { tools: count(".tools"), kernels: count(".kernel > summary") };
  for (const details of all("details")) details.open = true;
  const result = {
    closed,
    tables: count("table"), rows: count(".asm tr[id]"), source: count(".src tr[id]"), heat: count("svg.heat"),
    heat_bars: count("svg.heat rect"), flow: count("svg.flow path"), timeline: count("svg.timeline a rect"),
    words: count(".words span"), noscript: count("noscript p"), canvases: count("canvas"), buttons: count("th button"),
  };
  const out = document.createElement("pre");
  out.id = "probe-result";
  out.textContent = JSON.stringify(result);
  document.body.append(out);
});
