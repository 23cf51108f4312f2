"use strict";
// What the tables of imbalance show: at first, sorted by each column, and with a search.
addEventListener("load", async () => {
  const sleep = time => new Promise(done => setTimeout(done, time));
  const tables = [...document.querySelectorAll("#imbalance table")];
  const rows = table => [...table.tBodies[0].rows].filter(row => !row.hidden)
    .map(row => [...row.cells].map(cell => cell.textContent.trim()));
  const read = table => {
    const heads = [...table.tHead.rows[0].cells];
    // A kernel leads to its section, an address to its instruction.
    const links = [...table.tBodies[0].rows].map(row => [...row.querySelectorAll("a")].map(link => {
      const target = document.getElementById(link.hash.slice(1));
      return target && (target.querySelector("summary h2") ?? target.cells[0]).textContent.trim();
    }));
    const first = rows(table);
    const sorted = heads.map(head => {
      head.querySelector("button").click();
      return rows(table);
    });
    return { caption: table.caption.textContent, heads: heads.map(head => head.textContent), first, sorted, links };
  };
  const shown = tables.map(read);
  const search = document.getElementById("search");
  search.value = "non_divergent";
  search.dispatchEvent(new Event("input", { bubbles: true }));
  await sleep(300);
  const out = document.createElement("pre");
  out.id = "probe-result";
  out.textContent = JSON.stringify({
    tables: shown,
    searched: tables.map(rows),
    headings: [...document.querySelectorAll("#imbalance h3")].map(heading => heading.textContent),
  });
  document.body.append(out);
});
