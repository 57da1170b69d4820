// Keyboard control of the review queue: j and k move, the other keys press the buttons of the page.
"use strict";
(() => {
  const rows = [...document.querySelectorAll(".suggestions > li")];
  const currentIndex = () => rows.findIndex((row) => row.contains(document.activeElement));
  const focusRow = (index) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (row) {
      const fold = row.closest("details");
      if (fold) fold.open = true;
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
      if (event.key === "Escape" && currentIndex() >= 0) focusRow(currentIndex());
      return;
    }
    const row = rows[currentIndex()];
    if (event.key === "j") focusRow(currentIndex() + 1);
    else if (event.key === "k") focusRow(currentIndex() < 0 ? 0 : currentIndex() - 1);
    else if (event.key === "u") document.querySelector('#last [data-key="u"]')?.click();
    else if (event.key === "Enter" && event.target === row) row.querySelector("a")?.click();
    else if (row && event.key === "x") row.querySelector('[name="chosen"]')?.click();
    else if ("ar".includes(event.key) && document.querySelector('[name="chosen"]:checked')) {
      document.querySelector(`#many [data-key="${event.key}"]`)?.click();
    } else if (row && "aro".includes(event.key)) {
      const button = row.querySelector(`[data-key="${event.key}"]`);
      if (event.key === "o") button?.focus();
      else button?.click();
    } else return;
    event.preventDefault();
  });
  const first = document.getElementById(location.hash.slice(1));
  if (first && rows.includes(first)) focusRow(rows.indexOf(first));
})();
