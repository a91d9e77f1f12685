"use strict";
function sortRows(table, header) {
  const column = Number(header.dataset.column);
  const numeric = header.classList.contains("number");
  const direction = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const key = (row) => row.cells[column].dataset.value ?? "";
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === "" || b === "") return (a === "") - (b === "");  // what is missing comes last
    return direction * (numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
  });
  table.tBodies[0].append(...rows);
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
}
for (const header of document.querySelectorAll("th[data-column]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  button.addEventListener("click", () => sortRows(header.closest("table"), header));
  header.append(button);
}

function markCutEdges(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  box.classList.toggle("cut-left", box.scrollLeft > 2);
  box.classList.toggle("cut-right", box.scrollLeft < hidden - 2);
}
const resized = new ResizeObserver((entries) => entries.forEach((entry) => markCutEdges(entry.target)));
for (const box of document.querySelectorAll(".box")) {
  box.addEventListener("scroll", () => markCutEdges(box));
  resized.observe(box);  // calls once at the beginning, and when a fold is opened
}
