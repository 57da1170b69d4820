// The inbox by keyboard: j and k walk, the other keys press the buttons that are there anyway.
"use strict";
(() => {
  const rows = [...document.querySelectorAll(".suggestions > li")];
  const at = () => rows.findIndex((row) => row.contains(document.activeElement));
  const go = (number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, number))];
    if (row) {
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape" && at() >= 0) go(at());
      return;
    }
    const row = rows[at()];
    if (event.key === "j") go(at() + 1);
    else if (event.key === "k") go(at() < 0 ? 0 : at() - 1);
    else if (event.key === "u") document.querySelector('#last [data-key="u"]')?.click();
    else if (event.key === "Enter" && event.target === row) row.querySelector("a")?.click();
    else if (row && "aro".includes(event.key)) {
      const button = row.querySelector(`[data-key="${event.key}"]`);
      if (event.key === "o") button?.focus();
      else button?.click();
    } else return;
    event.preventDefault();
  });
  const first = document.getElementById(location.hash.slice(1));
  if (first && rows.includes(first)) go(rows.indexOf(first));
})();
