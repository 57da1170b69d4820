// The key / goes to the search box, on every page. Completions are asked for while one types, and offered by the browser's
// own list.
"use strict";
(() => {
  const list = document.getElementById("offered");
  let waiting = 0;
  async function offer(field) {
    const text = field.value;
    const answer = await fetch(`${list.dataset.source}?q=${encodeURIComponent(text)}`);
    if (!answer.ok) return;
    const { suggestions } = await answer.json();
    if (field.value !== text) return; // more was typed meanwhile
    list.replaceChildren(...suggestions.map(([value, label]) => {
      const option = document.createElement("option");
      option.value = value;
      option.label = label;
      return option;
    }));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    document.getElementById("find").focus();
    event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    if (event.target.getAttribute("list") !== "offered") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => offer(event.target).catch(() => {}), 150); // offline: nothing is offered
  });
})();
