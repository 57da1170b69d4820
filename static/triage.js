// Keyboard control of the triage tables: j and k move, x selects, the key of an action presses its button and moves to
// the next row. The forms work without this file too.
"use strict";
(() => {
  const form = document.getElementById("actions");
  const everyRow = () => [...document.querySelectorAll("table.triage tbody tr[data-row]")];
  const isShown = (row) => !row.closest("details:not([open])");
  const allRows = () => everyRow().filter(isShown);
  const focusedRow = () => document.activeElement.closest?.("table.triage tbody tr[data-row]");
  const rowByKey = (key) => document.querySelector(`table.triage tr[data-row="${key}"]`);
  // The row itself, or the row that has replaced it after a change.
  const attached = (row) => (row && !row.isConnected && rowByKey(row.dataset.row)) || row;
  const releaseShown = () => form?.elements.release?.value || ""; // whose counts the answer to an action renews
  const checkbox = (row) => row?.querySelector('input[name="row"]');
  const single = document.getElementById("single-lines"); // works without this file, but is not remembered then
  if (single) {
    single.checked = localStorage.getItem("single-lines") === "on";
    single.addEventListener("change", () => localStorage.setItem("single-lines", single.checked ? "on" : ""));
  }
  let lastRow = null; // the row that had the focus last
  let anchor = null; // the row that was selected last
  let pendingButton = null; // the button whose action still needs an argument
  let requests = Promise.resolve(); // one request at a time: each must see the revisions that the previous one made

  const unfold = (row) => row.closest("details")?.setAttribute("open", "");
  const focusRow = (row) => {
    if (!row) return;
    unfold(row);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const showError = (text) => {
    const line = document.createElement("li");
    line.className = "wrong";
    line.textContent = text;
    document.getElementById("feedback")?.prepend(line);
  };
  const moveBy = (step) => {
    const rows = allRows();
    const index = rows.indexOf(focusedRow() || attached(lastRow));
    focusRow(rows[index < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, index + step))]);
  };
  const select = (row, range) => {
    const rows = allRows();
    const from = range && anchor && isShown(attached(anchor)) ? rows.indexOf(attached(anchor)) : rows.indexOf(row);
    const [first, end] = [from, rows.indexOf(row)].sort((a, b) => a - b);
    const on = range ? true : !checkbox(row).checked;
    rows.slice(first, end + 1).map(checkbox).forEach((box) => box && (box.checked = on));
    anchor = row;
  };
  const targetRows = () => {
    const selected = everyRow().filter((row) => checkbox(row)?.checked);
    return selected.length ? selected : [focusedRow() || attached(lastRow)].filter((row) => checkbox(row) && isShown(row));
  };
  const send = (button, argument) => {
    const targets = targetRows();
    if (!targets.length) return;
    targets.forEach(unfold);
    const keys = [...new Set(targets.map((row) => row.dataset.row))];
    const wasSelected = checkbox(targets[0]).checked;
    targets.forEach((row) => (checkbox(row).checked = false));
    const rows = allRows();
    const end = targets[targets.length - 1];
    const next = rows[rows.indexOf(end) + 1];
    const stay = next ? null : end.dataset.row;
    lastRow = next || end;
    focusRow(lastRow);
    const goneTo = lastRow.dataset.row;
    const values = Object.fromEntries(new FormData(form));
    form.elements.notify_thread.checked = false;
    // What was typed comes back if it was not applied, and so does the row that it was for, unless somebody has gone on.
    const giveBack = (event) => {
      const refused = !event.detail.successful || event.detail.xhr.getResponseHeader("X-Not-Applied");
      if (!refused || !argument || form.elements.argument.value) return;
      form.elements.argument.value = argument;
      form.elements.notify_thread.checked = Boolean(values.notify_thread);
      const inForm = document.activeElement.closest?.("input, select, textarea");
      if (inForm || lastRow.dataset.row !== goneTo || everyRow().some((row) => checkbox(row)?.checked)) return;
      const refusedRows = keys.map(rowByKey);
      if (wasSelected) refusedRows.forEach((row) => (checkbox(row).checked = true));
      lastRow = refusedRows[0];
      pendingButton = button;
      mark(refusedRows);
      form.elements.argument.focus();
    };
    requests = requests.catch(() => {}).then(() => {
      const row = keys.map((key) => checkbox(rowByKey(key)).value);
      form.addEventListener("htmx:afterRequest", giveBack, { once: true });
      return htmx.ajax("POST", form.getAttribute("action"), {
        source: form, target: "#feedback", swap: "afterbegin", values: { ...values, do: button.value, argument, row },
      }).then(() => stay && !focusedRow() && focusRow(rowByKey(stay)));
    });
  };
  // The rows that an argument is being typed for.
  const mark = (rows) => allRows().forEach((row) => row.classList.toggle("acting", rows.includes(row)));
  const runAction = (button) => {
    const field = form.elements.argument;
    if (button.dataset.needs && !field.value.trim()) {
      pendingButton = button;
      lastRow = focusedRow() || lastRow;
      mark(targetRows());
      field.placeholder = button.dataset.needs;
      field.focus();
      return;
    }
    // What an action does not take stays where it was typed: it would be refused.
    const takes = button.dataset.needs || "offers" in button.dataset;
    send(button, takes ? field.value : "");
    if (takes) field.value = "";
    pendingButton = null;
    mark([]);
    button.closest("details")?.removeAttribute("open");
  };
  const undo = () => {
    const undoForm = document.querySelector("#feedback form");
    if (!undoForm) return;
    requests = requests.catch(() => {}).then(() => {
      const values = { ...Object.fromEntries(new FormData(undoForm)), release: releaseShown() };
      undoForm.remove();
      return htmx.ajax("POST", undoForm.getAttribute("action"), { source: "#feedback", target: "#feedback", swap: "afterbegin", values });
    });
  };
  // A changed row has an Undo of its own; a message that offers the same loses it.
  const undoBatch = (button) => {
    requests = requests.catch(() => {}).then(() => {
      document.querySelector(`#feedback form input[name=batch][value="${button.value}"]`)?.form.remove();
      const values = { batch: button.value, csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value, release: releaseShown() };
      return htmx.ajax("POST", button.formAction, { source: "#feedback", target: "#feedback", swap: "afterbegin", values });
    });
  };
  const expand = (row) => {
    if (row.nextElementSibling?.classList.contains("brief")) return row.nextElementSibling.remove();
    const details = document.createElement("tr");
    details.className = "brief";
    details.insertCell().colSpan = row.cells.length;
    row.after(details);
    htmx.ajax("GET", `${row.querySelector("th a").getAttribute("href")}brief/`, { target: details.cells[0], swap: "innerHTML" });
  };
  const inField = (event) => {
    if (!event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return false;
    if (event.key === "Escape") {
      pendingButton = null;
      mark([]);
      focusRow(lastRow || allRows()[0]);
    } else if (event.key === "Enter" && event.target.name === "argument") {
      event.preventDefault(); // by default, a browser presses the first button
      const button = pendingButton;
      if (button && event.target.value.trim()) {
        focusRow(lastRow);
        runAction(button);
      }
    }
    return true;
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || inField(event)) return;
    const row = focusedRow();
    const key = event.key;
    if (key === "j") moveBy(1);
    else if (key === "k") moveBy(-1);
    else if (key === "?") {
      const help = document.getElementById("keys"); // below the table
      if (help.toggleAttribute("open")) help.scrollIntoView({ block: "center" });
    } else if (key === "Enter" && row && !event.target.closest("a, button")) row.querySelector("th a").click();
    else if (key === "s" && row) expand(row);
    else if ((key === "x" || key === "X") && checkbox(row)) select(row, event.shiftKey);
    else if (key === "u" && form) undo();
    else {
      const button = form && [...form.querySelectorAll("button[data-key]")].find((each) => each.dataset.key === key);
      if (!button || !focusedRow() && !form.querySelector("input[name=row]:checked")) return;
      if (!event.repeat) runAction(button); // a key that is held down counts once
    }
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#actions button[data-key]");
    if (button) {
      event.preventDefault();
      if (targetRows().length) runAction(button);
      else showError("Select a row first.");
    } else if (event.target.name === "row") {
      if (event.shiftKey && anchor) select(event.target.closest("tr"), true);
      anchor = event.target.closest("tr");
    } else if (event.target.closest?.("#feedback form button")) {
      event.preventDefault();
      undo();
    } else if (event.target.name === "batch" && event.target.formAction) {
      event.preventDefault();
      undoBatch(event.target);
    }
  });
  // Error responses are one line of plain text; show it where other responses are shown.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status < 400) return;
    showError(event.detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain")
      ? event.detail.xhr.responseText : `The request failed (${event.detail.xhr.status}). Reload the page to see the current state.`);
  });
  ["htmx:sendError", "htmx:timeout"].forEach((event) => document.body.addEventListener(event, () => {
    showError("The server can't be reached, so the change may not have been saved. Reload the page to check.");
  }));
  // Rows that others have changed are replaced where they stand: what is selected, focused or being typed stays so.
  const PERIOD = 20_000; // milliseconds
  const PATIENCE = 10_000; // milliseconds; what a key does waits until the answer has come
  const replaceRow = (old, fresh) => {
    const within = old.contains(document.activeElement) ? document.activeElement : null;
    const selector = within && within !== old && (within.name === "row" ? "input[name=row]" : "th a");
    if (checkbox(fresh) && checkbox(old)) checkbox(fresh).checked = checkbox(old).checked;
    if (anchor === old) anchor = fresh;
    fresh.classList.add("fresh");
    unfold(old); // what has changed shows
    old.replaceWith(fresh);
    if (within) (selector ? fresh.querySelector(selector) : fresh)?.focus({ preventScroll: true });
  };
  const refresh = async () => {
    const rows = [...new Set(everyRow().map((row) => `${row.dataset.row}.${row.dataset.revision}`))];
    if (!rows.length || document.hidden || document.querySelector("table.triage tr:active")) return; // nothing moves under a press
    const address = `/triage/news/?rows=${rows.join(",")}${form ? "&act=1" : ""}`;
    const response = await fetch(address, { signal: AbortSignal.timeout(PATIENCE) });
    if (response.status !== 200) return; // the next time, perhaps
    const found = document.createElement("template");
    found.innerHTML = await response.text();
    found.content.querySelectorAll("tr[data-row]").forEach((fresh) => {
      document.querySelectorAll(`table.triage tr.r${fresh.dataset.row}`).forEach((old) => replaceRow(old, fresh.cloneNode(true)));
    });
  };
  const refreshSoon = () => (requests = requests.catch(() => {}).then(refresh).catch(() => {}));
  setInterval(refreshSoon, PERIOD);
  document.addEventListener("visibilitychange", refreshSoon);

  // What was done is said for a while, unless somebody is at it; errors stay. `u` undoes it all the same.
  const LASTS = 20_000; // milliseconds
  setInterval(() => document.querySelectorAll("#feedback li:not(.wrong)").forEach((line) => {
    line.dataset.since ||= Date.now();
    if (Date.now() - line.dataset.since > LASTS && !line.matches(":hover, :focus-within")) line.hidden = true;
  }), 1000);
  // Back from a report leads to its row.
  const here = `row of ${location.pathname}${location.search}`;
  window.addEventListener("pagehide", () => lastRow && sessionStorage.setItem(here, lastRow.dataset.row));
  window.addEventListener("pageshow", (event) => {
    const back = event.persisted || performance.getEntriesByType("navigation")[0]?.type === "back_forward";
    if (back) focusRow(rowByKey(sessionStorage.getItem(here)));
  });

  document.addEventListener("focusin", () => (lastRow = focusedRow() || lastRow));
})();
