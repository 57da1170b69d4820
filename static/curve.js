// A curve with hover, zoom and keyboard: replaces the drawn picture, whose numbers it fetches.
"use strict";
(async () => {
  const figure = document.getElementById("drawn");
  const readout = document.getElementById("readout");
  const picture = figure.querySelector(".curve");
  if (!picture || typeof uPlot === "undefined") return;
  const answer = await fetch(figure.dataset.source);
  const data = answer.ok ? await answer.json() : null; // else the picture stays
  if (!data || data.names.length < 2) return;
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const places = data.names.map((_, place) => place);
  const kinds = { change: "warn", culprit: "bad", fix: "good", release: "soft" };
  const day = (place) => new Date(1000 * data.dates[place]).toISOString().slice(0, 10);
  const shown = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });

  function describe(place) {
    const title = data.titles[place] ? ` "${data.titles[place]}"` : "";
    const interval = data.runs[place] > 1 ? `, 95% CI ${shown(data.low[place])} to ${shown(data.high[place])}` : "";
    const marks = data.marks.filter((mark) => mark[0] === place).map((mark) => `; ${mark[1]} ${mark[2]}`);
    return `${data.names[place]}${title}, ${day(place)}: ${shown(data.means[place])} ${data.unit}${interval}, ` +
      `${data.runs[place]} run${data.runs[place] === 1 ? "" : "s"}${marks.join("")}`;
  }

  function drawDots(plot) {
    const { ctx, bbox } = plot;
    const size = 3 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.globalAlpha = 0.45;
    ctx.fillStyle = color("soft");
    data.samples.forEach((samples, place) => {
      const x = plot.valToPos(place, "x", true);
      for (const sample of samples) ctx.fillRect(x - size / 2, plot.valToPos(sample, "y", true) - size / 2, size, size);
    });
    ctx.globalAlpha = 1;
    ctx.strokeStyle = color("ink");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([8 * devicePixelRatio, 4 * devicePixelRatio]);
    for (const [first, last, level] of data.levels) {
      const y = plot.valToPos(level, "y", true);
      ctx.beginPath();
      ctx.moveTo(plot.valToPos(first, "x", true), y);
      ctx.lineTo(plot.valToPos(last, "x", true), y);
      ctx.stroke();
    }
    ctx.restore();
  }

  // The marks are links with a line under them, so that they can be read, clicked and reached by Tab.
  const marks = data.marks.map(([place, kind, label, href]) => {
    const element = document.createElement(href ? "a" : "span");
    if (href) {
      element.href = href;
      element.setAttribute("aria-label", `${kind} at ${data.names[place]}: ${label}`);
      element.addEventListener("mousedown", (event) => event.stopPropagation()); // no zoom begins on it
    }
    element.className = `mark ${kind}`;
    element.textContent = label;
    return { place, element };
  });

  function placeMarks(plot) {
    let before = -Infinity;
    let row = 0;
    for (const { place, element } of [...marks].sort((one, other) => one.place - other.place)) {
      const x = plot.valToPos(place, "x");
      element.hidden = x < 0 || x > plot.over.clientWidth;
      if (element.hidden) continue;
      row = x - before < 90 ? row + 1 : 0; // labels of neighbours stand under each other
      before = x;
      element.style.left = `${x}px`;
      element.style.paddingTop = `${(row % 8) * 14}px`;
      element.classList.toggle("left", x > plot.over.clientWidth - 90);
    }
  }

  const axis = { stroke: color("soft"), grid: { stroke: color("line") }, ticks: { stroke: color("line") } };
  const unseen = { stroke: "transparent", points: { show: false } };
  const options = {
    width: figure.clientWidth,
    height: 340,
    scales: { x: { time: false } },
    cursor: { drag: { x: true, y: false } },
    legend: { show: false },
    axes: [
      { ...axis, space: 90, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && data.dates[tick] ? day(tick) : "")) },
      { ...axis, size: 70, values: (_, ticks) => ticks.map(shown) },
    ],
    series: [{}, unseen, unseen, unseen, unseen, { stroke: color("link"), width: 2, points: { size: 4 } }],
    bands: [{ series: [1, 2], fill: color("here") }],
    hooks: {
      drawSeries: [(plot, series) => { if (series === 4) drawDots(plot); }], // over the band, under the line
      draw: [placeMarks],
      setCursor: [(plot) => { if (plot.cursor.idx != null) readout.textContent = describe(plot.cursor.idx); }],
    },
  };
  const holder = document.createElement("div");
  holder.tabIndex = 0;
  holder.className = "curve live";
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", `${data.metric} by build: arrow keys read the builds, drag zooms, Escape shows all`);
  picture.replaceWith(holder);
  document.getElementById("keys").hidden = false;
  const ends = (end, else_) => places.map((place) => (data.samples[place] ? end(...data.samples[place]) : else_[place]));
  const columns = [places, data.high, data.low, ends(Math.max, data.high), ends(Math.min, data.low), data.means];
  const plot = new uPlot(options, columns, holder);
  plot.over.append(...marks.map((mark) => mark.element));
  addEventListener("resize", () => plot.setSize({ width: figure.clientWidth, height: 340 }));

  let at = places.length - 1;
  holder.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") plot.setScale("x", { min: 0, max: places.length - 1 });
    if (!(event.key in steps)) return;
    event.preventDefault();
    at = Math.max(0, Math.min(places.length - 1, at + steps[event.key]));
    plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.valToPos(data.means[at], "y") });
    readout.textContent = describe(at);
  });
})();
