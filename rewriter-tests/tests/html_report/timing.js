"use strict";
// How long the page takes until it can be used, and to open and search what was closed.
addEventListener("load", () => {
  const now = () => performance.now();
  document.body.getBoundingClientRect();
  const load = now();
  const last = [...document.querySelectorAll(".kernel")].at(-1);
  let begin = now();
  last.open = true;
  last.scrollIntoView();
  last.getBoundingClientRect();
  const open = now() - begin;
  begin = now();
  const search = document.getElementById("search");
  search.value = "zzz-nowhere";
  search.dispatchEvent(new Event("input"));
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  document.body.getBoundingClientRect();
  const searching = now() - begin;
  const out = document.createElement("pre");
  out.id = "probe-result";
  out.textContent = JSON.stringify({ load, open, search: searching, elements: document.getElementsByTagName("*").length,
    hidden: document.querySelectorAll(".kernel[hidden]").length });
  document.body.append(out);
});
