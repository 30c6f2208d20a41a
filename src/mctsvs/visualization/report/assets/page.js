"use strict";
// Draws the figures of the page in the colours of its theme, as they come into view; the live page brings new ones.
(function () {
  const root = document.documentElement;
  const stored = document.getElementById("figures");
  const figures = stored ? JSON.parse(stored.textContent) : {};
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = () => window.innerWidth < 560;
  let chosen = null;

  function theme() {
    root.classList.toggle("dark", chosen === null ? dark.matches : chosen === "dark");
    const style = getComputedStyle(root);
    const colours = {};
    for (const name of ["page", "ink", "soft", "quiet", "faint", "rule", "accent", "shade", "band", "band2", "second", "third"])
      colours["@" + name] = style.getPropertyValue("--" + name).trim();
    const steps = style.getPropertyValue("--scale").split(",").map((part) => part.trim());
    colours["@scale"] = steps.map((colour, i) => [i / (steps.length - 1), colour]);
    return colours;
  }
  let colours = theme();

  function painted(value) {
    if (typeof value === "string") return Object.hasOwn(colours, value) ? colours[value] : value;
    if (Array.isArray(value)) return value.length && typeof value[0] === "number" ? value : value.map(painted);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item)]));
    return value;
  }

  function axis(own) {
    const base = {
      gridcolor: "@rule", zeroline: false, linecolor: "@faint", ticks: "outside", tickcolor: "@faint", ticklen: 4,
      automargin: true, fixedrange: narrow(), exponentformat: "power",
    };
    const merged = { ...base, ...own };
    merged.title = { standoff: 8, ...(own && own.title), font: { size: 13, color: "@soft" } };
    if (merged.range === null) delete merged.range;
    return merged;
  }

  function layout(own, height) {
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@soft" },
      margin: { l: 54, r: 12, t: 14, b: 44 }, hovermode: "closest",
      hoverlabel: { bgcolor: "@page", bordercolor: "@quiet", font: { color: "@ink" } },
      ...own,
    };
    if (own.xaxis) merged.xaxis = axis(own.xaxis);
    if (own.yaxis) merged.yaxis = axis(own.yaxis);
    if (narrow()) delete merged.updatemenus;
    if (own.legend) {
      merged.legend = { ...own.legend, font: { color: "@soft" }, bgcolor: "rgba(0,0,0,0)" };
      if (own.showlegend === undefined) merged.showlegend = true;
      merged.margin = { ...merged.margin, t: narrow() ? 76 : 40 };
      if (narrow()) merged.height = height + 40;
    }
    return painted(merged);
  }

  function draw(place) {
    const figure = figures[place.id];
    if (!figure) return;
    place.dataset.drawn = "yes";
    const options = { responsive: true, displaylogo: false, displayModeBar: false };
    Plotly.react(place, painted(figure.data), layout(figure.layout, figure.height), options);
  }

  // one after the other, so that the first can be seen while the next is drawn
  const waiting = [];
  function next() {
    const place = waiting.shift();
    if (!place) return;
    if (place.isConnected && !place.dataset.drawn) draw(place);
    setTimeout(next);
  }
  const watcher = new IntersectionObserver(
    (entries) => {
      const idle = waiting.length === 0;
      for (const entry of entries) if (entry.isIntersecting && !entry.target.dataset.drawn) waiting.push(entry.target);
      if (idle) next();
    }, { rootMargin: "600px" });

  function attend(within) {
    within.querySelectorAll(".figures > div").forEach((place) => watcher.observe(place));
  }

  function redraw() {
    colours = theme();
    document.querySelectorAll(".figures > div[data-drawn]").forEach(draw);
  }

  dark.addEventListener("change", redraw);
  const button = document.getElementById("theme");
  if (button) button.addEventListener("click", () => {
    chosen = root.classList.contains("dark") ? "light" : "dark";
    redraw();
  });
  window.addEventListener("beforeprint", () => document.querySelectorAll(".figures > div").forEach(draw));
  attend(document);

  // the live page: ask for what has changed, a second after the last answer

  function replace(name, part) {
    const section = document.getElementById(name);
    if (!section) return;
    section.hidden = part.text === "";
    document.querySelectorAll(`nav a[href="#${name}"]`).forEach((link) => { link.hidden = section.hidden; });
    const text = section.querySelector(".text");
    const open = [...text.querySelectorAll("details")].map((one) => one.open);
    text.innerHTML = part.text;
    text.querySelectorAll("details").forEach((one, i) => { one.open = open[i] || false; });
    const holder = section.querySelector(".figures");
    const names = Object.keys(part.figures);
    Object.assign(figures, part.figures);
    if (names.join() !== [...holder.children].map((child) => child.id).join()) {
      for (const child of holder.children) Plotly.purge(child);
      holder.replaceChildren(...names.map((id) => {
        const place = document.createElement("div");
        place.id = id;
        place.className = part.figures[id].wide ? "wide" : "";
        place.setAttribute("role", "img");
        place.setAttribute("aria-label", part.figures[id].alt);
        place.style.minHeight = part.figures[id].height + "px";
        return place;
      }));
      attend(holder);
    } else {
      for (const id of names) { const place = document.getElementById(id); if (place.dataset.drawn) draw(place); }
    }
  }

  const state = document.getElementById("live");
  if (!state) return;
  let version = state.dataset.version;
  async function ask() {
    try {
      const answer = await fetch(state.dataset.from + (state.dataset.from.includes("?") ? "&" : "?") + "have=" + encodeURIComponent(version), { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const news = await answer.json();
      for (const [name, part] of Object.entries(news.sections)) replace(name, part);
      version = news.version;
      state.textContent = news.state;
      state.classList.toggle("off", !news.running);
    } catch {
      state.textContent = "not connected";
      state.classList.add("off");
    }
    setTimeout(ask, document.hidden ? 5000 : 700);
  }
  setTimeout(ask, 700);
})();
