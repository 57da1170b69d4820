// The outbox by keyboard: j and k walk, x chooses, the other keys press the buttons that are there anyway.
"use strict";
(() => {
  const rows = [...document.querySelectorAll("table.mails tbody tr")];
  const at = () => rows.findIndex((row) => row.contains(document.activeElement));
  const go = (number) => rows[Math.max(0, Math.min(rows.length - 1, number))]?.focus();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const row = rows[at()];
    const box = row?.querySelector("input[type=checkbox]");
    if (event.key === "j") go(at() + 1);
    else if (event.key === "k") go(at() < 0 ? 0 : at() - 1);
    else if (event.key === "x" && box) box.checked = !box.checked;
    else if (event.key === "Enter" && event.target === row) row.querySelector("a")?.click();
    else if (box && "ahcr".includes(event.key)) {
      const form = row.closest("form");
      if (!form.querySelector("input[type=checkbox]:checked")) box.checked = true;
      form.querySelector(`button[data-key="${event.key}"]`)?.click();
    } else return;
    event.preventDefault();
  });
})();
