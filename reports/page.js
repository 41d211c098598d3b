// Adds sorting, searching and zoom to a page that is whole without them.
"use strict";
for (const table of document.querySelectorAll("table[data-sort]")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const text = (row) => {
        const cell = row.cells[column];
        const exact = cell.querySelector("[data-value]");
        return exact ? exact.dataset.value : cell.dataset.key || cell.textContent.trim();
      };
      for (const body of table.tBodies) {
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [text(a), text(b)];
          const [n, m] = [Number.parseFloat(x), Number.parseFloat(y)];
          const order = Number.isNaN(n) || Number.isNaN(m) ? x.localeCompare(y) : n - m;
          return up ? order : -order;
        });
        body.append(...rows);
      }
    });
  });
}
for (const table of document.querySelectorAll("table[data-search]")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const told = document.createElement("span");
  input.type = "search";
  told.setAttribute("role", "status");
  label.className = "search";
  label.append("Search ", input, " ", told);
  table.parentElement.before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      shown += row.hidden ? 0 : 1;
    }
    told.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length} runs` : "";
  });
}
for (const strips of document.querySelectorAll(".strips")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "zoom";
  button.setAttribute("aria-pressed", "false");
  button.textContent = "Larger images";
  button.addEventListener("click", () => {
    const on = strips.classList.toggle("large");
    button.setAttribute("aria-pressed", String(on));
  });
  strips.before(button);
}
