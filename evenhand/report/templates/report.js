"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const jobs = Object.entries(specs).map(([name, spec]) => {
    const place = document.getElementById("chart-" + name);
    if (!place) return null;
    const room = place.clientWidth || document.querySelector("main").clientWidth - 40 || 600;
    const fit = (part, share) => {
      if (typeof part.width === "number") part.width = Math.min(part.width, Math.max(120, room - share));
      for (const key of ["vconcat", "concat", "hconcat", "layer"]) (part[key] || []).forEach((p) => fit(p, share));
    };
    fit(spec, name === "groups" ? 190 : name === "directions" ? 250 : 70);
    if (spec.concat && room < 560) spec.columns = 1;
    return vegaEmbed(place, spec, { renderer: "svg", actions: false, tooltip: { theme: "custom" } }).then((result) => {
      const svg = place.querySelector("svg");
      if (svg) { svg.setAttribute("role", "img"); svg.setAttribute("aria-label", place.dataset.label); }
      return result;
    });
  });
  Promise.all(jobs.filter(Boolean)).then(() => { document.documentElement.dataset.charts = "ready"; });

  const tables = [...document.querySelectorAll("table.people")];
  const search = document.getElementById("search");
  const count = document.getElementById("count");
  const fold = (text) => text.normalize("NFKD").toLowerCase();
  const shown = () => tables.find((table) => !table.closest(".scroll").hidden);
  const filter = () => {
    const words = fold(search.value).split(/\s+/).filter(Boolean);
    const table = shown();
    let kept = 0;
    for (const row of table.tBodies[0].rows) {
      const text = fold(row.textContent);
      row.hidden = !words.every((word) => text.includes(word));
      kept += row.hidden ? 0 : 1;
    }
    count.textContent = `${kept} of ${table.tBodies[0].rows.length} people`;
  };
  const value = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("n"));
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        const numeric = rows.every((row) => value(row, i) === "" || !Number.isNaN(Number(value(row, i))));
        rows.sort((a, b) => {
          const [x, y] = [value(a, i), value(b, i)];
          const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }
  for (const button of document.querySelectorAll(".tabs button")) {
    button.addEventListener("click", () => {
      for (const other of document.querySelectorAll(".tabs button")) other.setAttribute("aria-pressed", String(other === button));
      for (const table of tables) table.closest(".scroll").hidden = table.id !== button.dataset.table;
      filter();
    });
  }
  if (search) { search.addEventListener("input", filter); filter(); }

  const table = JSON.parse(document.getElementById("thresholds").textContent);
  const slider = document.getElementById("threshold");
  if (slider && table.length) {
    document.getElementById("slider").hidden = false;
    const numbers = document.getElementById("threshold-numbers");
    const percent = (x) => (x === null ? "undefined" : (100 * x).toFixed(1) + "%");
    const put = (name, text) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = name; dd.textContent = text;
      const pair = document.createElement("div"); pair.append(dt, dd); numbers.append(pair);
    };
    const update = () => {
      const row = table[Number(slider.value)];
      document.getElementById("threshold-value").textContent = row.threshold.toFixed(2);
      numbers.replaceChildren();
      put("decided so", percent(row.selected)); put("balanced accuracy", percent(row.balanced_accuracy));
      put("wrongly so", percent(row.false_positives)); put("missed", percent(row.false_negatives));
      for (const [attribute, groups] of Object.entries(row.by_group))
        for (const [group, rate] of Object.entries(groups)) put(`${attribute}: ${group}`, percent(rate));
    };
    const start = Number(slider.dataset.start);
    slider.value = String(table.reduce((best, row, i) => (Math.abs(row.threshold - start) < Math.abs(table[best].threshold - start) ? i : best), 0));
    slider.addEventListener("input", update);
    update();
  }
})();
