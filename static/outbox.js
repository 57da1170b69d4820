// Keyboard control of the outbox: j and k move, x selects, the other keys press the buttons of the page.
"use strict";
(() => {
  const rows = [...document.querySelectorAll("table.mails tbody tr")];
  const currentIndex = () => rows.findIndex((row) => row.contains(document.activeElement));
  const focusRow = (index) => rows[Math.max(0, Math.min(rows.length - 1, index))]?.focus();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const row = rows[currentIndex()];
    const checkbox = row?.querySelector("input[type=checkbox]");
    if (event.key === "j") focusRow(currentIndex() + 1);
    else if (event.key === "k") focusRow(currentIndex() < 0 ? 0 : currentIndex() - 1);
    else if (event.key === "x" && checkbox) checkbox.checked = !checkbox.checked;
    else if (event.key === "Enter" && event.target === row) row.querySelector("a")?.click();
    else if (checkbox && "ahcr".includes(event.key)) {
      const form = row.closest("form");
      if (!form.querySelector("input[type=checkbox]:checked")) checkbox.checked = true;
      form.querySelector(`button[data-key="${event.key}"]`)?.click();
    } else return;
    event.preventDefault();
  });
})();
