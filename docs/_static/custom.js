// What the theme leaves out for keyboards and screen readers.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("p.caption[role=heading]").forEach((each) => each.setAttribute("aria-level", "2"));
  document.querySelectorAll("aside.toc-drawer").forEach((each) => each.setAttribute("aria-label", "On this page"));
  document.querySelectorAll("aside.sidebar-drawer").forEach((each) => each.setAttribute("aria-label", "All pages"));
  document.querySelectorAll("th:empty").forEach((each) => each.replaceWith(document.createElement("td")));
  document.querySelectorAll("pre, .table-wrapper, .cell_output").forEach((each) => (each.tabIndex = 0));
});
