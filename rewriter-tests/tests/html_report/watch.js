"use strict";
// Before anything of the page runs: what goes wrong on it.
window.wentWrong = [];
addEventListener("error", event => wentWrong.push(`error: ${event.message ?? event.target?.tagName}`), true);
addEventListener("unhandledrejection", event => wentWrong.push(`rejection: ${event.reason}`));
document.addEventListener("securitypolicyviolation", event => wentWrong.push(`policy: ${event.violatedDirective}`));
for (const level of ["error", "warn"]) {
  const was = console[level];
  console[level] = (...words) => { wentWrong.push(`console: ${words.join(" ")}`); was.apply(console, words); };
}
