// The desk by keyboard: j and k walk, x chooses, and a verb's key presses its button and goes on to the next row.
// Without this file the same forms do the same.
"use strict";
(() => {
  const desk = document.getElementById("desk");
  const rows = () => [...document.querySelectorAll("table.desk tbody tr[data-row]")];
  const here = () => document.activeElement.closest?.("table.desk tbody tr[data-row]");
  const byKey = (key) => document.querySelector(`table.desk tr[data-row="${key}"]`);
  // A row that was replaced by its newer form stands where it stood.
  const now = (row) => (row && !row.isConnected && byKey(row.dataset.row)) || row;
  const box = (row) => row?.querySelector('input[name="row"]');
  let last = null; // the row that was left last
  let anchor = null; // the row that was chosen last
  let armed = null; // the button that waits for words
  let turn = Promise.resolve(); // changes go one after the other: each must see what the one before has made

  const go = (row) => {
    if (!row) return;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const tell = (words) => {
    const line = document.createElement("li");
    line.className = "wrong";
    line.textContent = words;
    document.getElementById("told")?.prepend(line);
  };
  const step = (by) => {
    const all = rows();
    const at = all.indexOf(here() || now(last));
    go(all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by))]);
  };
  const choose = (row, through) => {
    const all = rows();
    const from = through && anchor ? all.indexOf(now(anchor)) : all.indexOf(row);
    const [first, end] = [from, all.indexOf(row)].sort((a, b) => a - b);
    const on = through ? true : !box(row).checked;
    all.slice(first, end + 1).forEach((each) => (box(each).checked = on));
    anchor = row;
  };
  const meant = () => {
    const chosen = rows().filter((row) => box(row)?.checked);
    return chosen.length ? chosen : [here() || now(last)].filter((row) => box(row));
  };
  const send = (button, argument) => {
    const those = meant();
    if (!those.length) return;
    const targets = [...new Set(those.map((row) => row.dataset.row))];
    those.forEach((row) => (box(row).checked = false));
    const all = rows();
    const end = those[those.length - 1];
    const next = all[all.indexOf(end) + 1];
    const stay = next ? null : end.dataset.row;
    last = next || end;
    go(last);
    const values = Object.fromEntries(new FormData(desk));
    desk.elements.notify_thread.checked = false;
    turn = turn.catch(() => {}).then(() => {
      const row = targets.map((key) => box(byKey(key)).value);
      return htmx.ajax("POST", desk.getAttribute("action"), {
        source: desk, target: "#told", swap: "afterbegin", values: { ...values, do: button.value, argument, row },
      }).then(() => stay && !here() && go(byKey(stay)));
    });
  };
  const press = (button) => {
    const field = desk.elements.argument;
    if (button.dataset.needs && !field.value.trim()) {
      armed = button;
      last = here() || last;
      field.placeholder = button.dataset.needs;
      field.focus();
      return;
    }
    send(button, field.value);
    field.value = "";
    armed = null;
  };
  const undo = () => {
    const form = document.querySelector("#told form");
    if (!form) return;
    turn = turn.catch(() => {}).then(() => {
      const values = Object.fromEntries(new FormData(form));
      form.remove();
      return htmx.ajax("POST", form.getAttribute("action"), { source: "#told", target: "#told", swap: "afterbegin", values });
    });
  };
  const expand = (row) => {
    if (row.nextElementSibling?.classList.contains("brief")) return row.nextElementSibling.remove();
    const more = document.createElement("tr");
    more.className = "brief";
    more.insertCell().colSpan = row.cells.length;
    row.after(more);
    htmx.ajax("GET", `${row.querySelector("th a").getAttribute("href")}brief/`, { target: more.cells[0], swap: "innerHTML" });
  };
  const inField = (event) => {
    if (!event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return false;
    if (event.key === "Escape") {
      armed = null;
      go(last || rows()[0]);
    } else if (event.key === "Enter" && event.target.name === "argument") {
      event.preventDefault(); // a browser would press the first button
      const button = armed;
      if (button && event.target.value.trim()) {
        go(last);
        press(button);
      }
    }
    return true;
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || inField(event)) return;
    const row = here();
    const key = event.key;
    if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "/") document.getElementById("q")?.focus();
    else if (key === "?") document.getElementById("keys").toggleAttribute("open");
    else if (key === "Enter" && row && !event.target.closest("a, button")) row.querySelector("th a").click();
    else if (key === "s" && row) expand(row);
    else if ((key === "x" || key === "X") && box(row)) choose(row, event.shiftKey);
    else if (key === "u" && desk) undo();
    else {
      const button = desk && [...desk.querySelectorAll("button[data-key]")].find((each) => each.dataset.key === key);
      if (!button || !here() && !desk.querySelector("input[name=row]:checked")) return;
      if (!event.repeat) press(button); // a key that is held down is pressed once
    }
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#desk button[data-key]");
    if (button) {
      event.preventDefault();
      if (meant().length) press(button);
      else tell("Select a row first.");
    } else if (event.target.name === "row") {
      if (event.shiftKey && anchor) choose(event.target.closest("tr"), true);
      anchor = event.target.closest("tr");
    } else if (event.target.closest?.("#told form button")) {
      event.preventDefault();
      undo();
    }
  });
  // A refusal is told in its words, as any other answer is.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status < 400) return;
    tell(event.detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain")
      ? event.detail.xhr.responseText : `The request failed (${event.detail.xhr.status}). Reload the page to see the current state.`);
  });
  document.body.addEventListener("htmx:sendError", () => {
    tell("The server can't be reached, so the change may not have been saved. Reload the page to check.");
  });
  document.addEventListener("focusin", () => (last = here() || last));
})();
