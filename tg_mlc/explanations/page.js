"use strict";
// What all pages share; the script of a page follows in the same element.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = document.querySelector("svg").namespaceURI;
const shapes = new Set(["svg", "g", "path", "circle", "line", "text", "tspan", "polyline", "title"]);

/** Makes an element; children that are strings become text, never markup. */
function make(tag, attributes = {}, ...children) {
  const node = shapes.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") node.addEventListener("click", value);
    else if (name === "css") for (const [key, entry] of Object.entries(value)) node.style.setProperty(key, entry);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}
const number = (value) => (value == null ? "–" : value.toFixed(2));
const signed = (value) => {
  if (value == null) return "–";
  const size = Math.abs(value);
  return (value < 0 ? "−" : "+") + size.toFixed(size >= 0.1 || !size ? 2 : size >= 0.01 ? 3 : 4);
};
const hue = (value) => (value < 0 ? "lower" : "raise");

function table(header, rows) {
  const head = make("tr", {}, ...header.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((cells) =>
    make("tr", {}, ...cells.map((cell, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, cell))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

/** Shades the components of a drawing by scores in steps of 99. */
function shadeComponents(drawing, values) {
  drawing.querySelectorAll("[data-component]").forEach((each) => {
    const value = values[each.dataset.component] ?? 0;
    each.style.setProperty("--w", Math.abs(value) / 99);
    each.style.setProperty("--hue", `var(--${hue(value)})`);
  });
}

/** A name with its signed value, over a bar; a bar of the value `most` has the whole width. */
function bar(name, value, most) {
  return [make("span", { class: "line" }, make("span", {}, name), make("span", { class: "number" }, signed(value))),
    make("span", { class: `track ${hue(value)}` }, make("i", { css: { width: `${(100 * Math.abs(value)) / most}%` } }))];
}

/** Lets the button change between the light and the dark theme. */
function startTheme() {
  $("theme").addEventListener("click", () => {
    const dark = $("theme").textContent === "Dark";
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    $("theme").textContent = dark ? "Light" : "Dark";
  });
  if (matchMedia("(prefers-color-scheme: dark)").matches) $("theme").textContent = "Light";
}
