(() => {
  const last = data.states.length; // the step that stands for the final probabilities
  const now = { sample: 0, label: 0, method: data.methods.findIndex((each) => each.chosen), step: last, measure: data.messages ? 0 : 1 };
  const sample = () => data.samples[now.sample];
  const row = () => Math.max(sample().labels.indexOf(now.label), 0); // of the chosen label in the arrays of a sample

  // Effects of another label on one: the name, the note, and the place in a row of effects.
  const MEASURES = [
    ["by its messages", "Change of its logit by the messages of another label: the logit with them, less the logit without them.", 1],
    ["if it is known to apply", "Change of its logit if another label were known to apply.", 4],
    ["if it is known not to", "Change of its logit if another label were known not to apply.", 3],
  ];
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1).trimEnd() + "…" : text);

  /** Scores of components for the chosen label, and whether the method tells raising from lowering. */
  function scores() {
    const found = sample().scores[data.methods[now.method].name];
    return { values: found.values[row()], scale: found.scales[row()] };
  }

  function choose(change) {
    Object.assign(now, change);
    if (!sample().labels.includes(now.label)) now.label = sample().labels[0];
    if ("sample" in change) showSample();
    if (!("step" in change)) showLabel();
    showStep();
  }

  function showSample() {
    const { name, labels, truth, decision, threshold, given } = sample();
    $("sample-title").textContent = name;
    document.querySelectorAll("[data-drawing]").forEach((each) => { each.hidden = each.dataset.drawing != now.sample; });
    document.querySelectorAll("[data-sample]").forEach((each) => {
      if (each.dataset.sample == now.sample) {
        each.setAttribute("aria-current", "true");
        each.scrollIntoView({ block: "nearest", inline: "nearest" });
      } else each.removeAttribute("aria-current");
    });
    $("labels").replaceChildren(...labels.map((label, i) => {
      const known = truth[i] == null ? "" : truth[i] ? "●" : "○";
      const told = (decision[i] ? ", predicted" : "") + (truth[i] == null ? "" : truth[i] ? ", applies" : ", does not apply");
      const button = make("button", { type: "button", "data-label": label, on: () => choose({ label }) },
        make("span", {}, data.labels[label] + (given[i] == null ? "" : " (given)")), make("span", { class: "number", "data-probability": i }),
        make("span", { class: "mark", "aria-hidden": "true" }, decision[i] ? "✓" : ""),
        make("span", { class: "mark", "aria-hidden": "true" }, known), make("span", { class: "sr" }, told));
      button.classList.toggle("yes", decision[i]);
      button.style.setProperty("--t", threshold[i] ?? 2);
      return make("li", {}, button);
    }));
    const left = data.asked - labels.length;
    $("left-out").textContent = left ? ` ${left} less probable labels are left out of this file.` : "";
    search();
  }

  function showStep() {
    const values = now.step === last ? sample().probability : sample().states[now.step];
    document.querySelectorAll("[data-probability]").forEach((each, i) => {
      each.textContent = number(values[i]);
      each.parentNode.style.setProperty("--p", values[i] ?? 0);
    });
    $("step").value = now.step;
    $("step-name").textContent = now.step === last ? "final" : data.states[now.step];
    $("step").setAttribute("aria-valuetext", $("step-name").textContent);
    showChart();
  }

  function showLabel() {
    const i = row(), { probability, threshold, decision, truth, given } = sample(), name = data.labels[now.label];
    document.querySelectorAll("[data-label]").forEach((each) => each.setAttribute("aria-pressed", each.dataset.label == now.label));
    $("label-title").textContent = name;
    $("probability").textContent = number(probability[i]);
    const limit = threshold[i] == null ? "by label sets" : `threshold ${number(threshold[i])}`;
    const known = truth[i] == null ? "" : truth[i] ? " It applies in the data." : " It does not apply in the data.";
    const predicted = `${decision[i] ? "predicted" : "not predicted"} (${limit}).`;
    const told = `given to the model as ${given[i] ? "present" : "absent"}, not predicted.`;
    $("verdict").textContent = (given[i] == null ? predicted : told) + known;
    shade();
    if (data.effects) showEffects();
    const parts = Object.entries(sample().parts).map(([part, values]) => [part, values[i]]);
    bars($("part-list"), parts.map(([part, value]) => ({ name: part, value })));
    $("parts").hidden = !parts.length;
  }

  function shade() {
    const { values, scale } = scores(), { components } = sample(), method = data.methods[now.method];
    const drawing = document.querySelector(`[data-drawing="${now.sample}"]`);
    shadeComponents(drawing, values);
    const said = method.signed ? "raise and lower" : "count for";
    $("shaded").textContent = !components.length ? "This sample has no components to shade." : scale
      ? `Shaded: the ${method.noun} that ${said} “${data.labels[now.label]}”, by ${method.title}.`
      : `By ${method.title}, no ${method.noun} count for “${data.labels[now.label]}”.`;
    const part = Object.keys(sample().parts).find((each) => method.title.endsWith(` of ${each}`));
    if (part) {
      const values = Object.values(sample().parts).map((each) => each[row()]), own = sample().parts[part][row()];
      $("shaded").textContent += ` They explain the part of ${part}, ${signed(own)} of a logit of ${signed(values.reduce((a, b) => a + b))}; occlusion explains all of it.`;
    }
    $("scale").classList.toggle("one", !method.signed);
    $("scale").firstElementChild.textContent = method.signed ? "lowers" : "less";
    $("scale").lastElementChild.textContent = method.signed ? "raises" : "more";
    const order = values.map((_, j) => j).sort((a, b) => Math.abs(values[b] ?? 0) - Math.abs(values[a] ?? 0));
    const cell = (value) => (value == null ? "–" : ((value / 99) * scale).toPrecision(2).replace("-", "−"));
    $("components").replaceChildren(table([method.noun, "score"], order.map((j) => [components[j], cell(values[j])])));
  }

  /** Bars of equal scale; those of labels can be clicked. */
  function bars(list, entries) {
    const most = Math.max(...entries.map((each) => Math.abs(each.most ?? each.value)), 1e-9);
    list.replaceChildren(...entries.map(({ name, value, label }) => {
      const content = bar(name, value, most);
      const leads = label != null && sample().labels.includes(label);
      return make("li", {}, leads ? make("button", { type: "button", on: () => choose({ label }) }, ...content) : make("div", {}, ...content));
    }));
  }

  function showEffects() {
    const [, note, place] = MEASURES[now.measure]; // of [label, effect, attention, if absent, if present]
    const found = [...sample().effects[row()]].sort((a, b) => Math.abs(b[place] ?? 0) - Math.abs(a[place] ?? 0));
    const entries = found.filter((each) => each[place]).map((each) => ({ name: data.labels[each[0]], value: each[place], label: each[0] }));
    const largest = Math.abs(entries[0]?.value ?? 0), most = Math.max(largest, 0.01); // less is drawn as little
    for (const each of entries) each.most = most;
    $("effect-note").textContent = note + (largest < 0.01 ? " None of them changes it by as much as 0.01." : "");
    bars($("raised"), entries.filter((each) => each.value > 0).slice(0, 6));
    bars($("lowered"), entries.filter((each) => each.value < 0).slice(0, 6));
    for (const id of ["raised", "lowered"]) if (!$(id).children.length) $(id).append(make("li", { class: "muted" }, "none"));
    $("effect-table").replaceChildren(table(["label", "by messages", "if known not to apply", "if known to apply", "attention"],
      found.map(([label, effect, attention, absent, present]) =>
        [data.labels[label], signed(effect), signed(absent), signed(present), number(attention)])));
    drawAround(entries.slice(0, 10).map(({ label, value }) => [label, value]), most);
  }

  /** The chosen label in the middle, and around it those whose messages count most, by size and sign. */
  function drawAround(found, most) {
    const width = 440, height = 330, middle = [width / 2, height / 2];
    const ring = [...found].sort((a, b) => b[1] - a[1]);
    const place = new Map(ring.map(([label], i) => {
      const angle = 2 * Math.PI * ((i + 0.5) / ring.length) - Math.PI / 2;
      return [label, [middle[0] + 112 * Math.cos(angle), middle[1] + 116 * Math.sin(angle)]];
    }));
    const likely = (label) => sample().probability[sample().labels.indexOf(label)] ?? 0;
    const node = ([x, y], label, radius) => [
      make("circle", { class: "node", cx: x, cy: y, r: radius }), make("circle", { class: "fill", cx: x, cy: y, r: radius * Math.sqrt(likely(label)) })];
    const among = data.graph.filter(([j, i]) => j < i && place.has(j) && place.has(i));
    const lines = among.length > 30 ? [] : among.map(([j, i]) => {
      const [[a, b], [c, d]] = [place.get(j), place.get(i)];
      return make("line", { class: "prior", x1: a, y1: b, x2: c, y2: d });
    });
    const edges = ring.map(([label, effect]) => {
      const [x, y] = place.get(label), far = Math.hypot(x - middle[0], y - middle[1]), at = (part) => [x + part * (middle[0] - x), y + part * (middle[1] - y)];
      const [a, b] = at(11 / far), size = 1 + 6 * Math.abs(effect / most), [c, d] = at(1 - (20 + size) / far), [e, f] = at(1 - 15 / far);
      const [u, v] = [(middle[1] - y) / far * (size * 0.6 + 2.5), -(middle[0] - x) / far * (size * 0.6 + 2.5)];
      return make("g", { class: hue(effect) }, make("line", { class: "edge", x1: a, y1: b, x2: c, y2: d, "stroke-width": size }),
        make("path", { class: "tip", d: `M${c + u} ${d + v}L${e} ${f}L${c - u} ${d - v}Z` }));
    });
    const nodes = ring.map(([label, effect]) => {
      const [x, y] = place.get(label), side = Math.abs(x - middle[0]) < 30 ? 0 : Math.sign(x - middle[0]);
      const words = data.labels[label].split(" "), rows = [""];
      for (const word of words) {
        const longer = `${rows.at(-1)} ${word}`.trim();
        if (longer.length > (side ? 15 : 24) && rows.at(-1)) rows.push(word); else rows[rows.length - 1] = longer;
      }
      const names = (rows.length > 2 ? [rows[0], rows.slice(1).join(" ")] : rows).map((text) => short(text, side ? 16 : 26));
      const top = side ? 4 - (names.length - 1) * 6.5 : y < middle[1] ? -14 - (names.length - 1) * 13 : 22;
      const leads = sample().labels.includes(label);
      return make("g", leads ? { class: "go", on: () => choose({ label }) } : {}, make("title", {}, `${data.labels[label]} ${signed(effect)}`), ...node([x, y], label, 7.5),
        ...names.map((text, i) => make("text", { x: x + 13 * side, y: y + top + 13 * i, "text-anchor": side ? (side < 0 ? "end" : "start") : "middle" }, text)));
    });
    $("around").replaceChildren(ring.length ? make("svg", { class: "picture", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Labels around ${data.labels[now.label]}; the table below lists them` }, ...lines, ...edges, ...node(middle, now.label, 13), ...nodes)
      : make("p", { class: "muted" }, "No other label sent it a message that counts."));
  }

  function showChart() {
    if (!last) return;
    const { states, probability, labels, threshold } = sample(), all = [...states, probability];
    const x = (step) => 30 + (step * 392) / last, y = (value) => 136 - 122 * value;
    const line = (i, kind) => make("polyline", { class: kind, points: all.map((values, step) => `${x(step)},${y(values[i] ?? 0)}`).join(" ") });
    const i = row(), names = [...data.states, "final"];
    const parts = [0, 0.5, 1].map((value) => make("text", { class: "faint", x: 22, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    parts.push(...names.map((name, step) => make("text", { class: "faint", x: x(step), y: 156, "text-anchor": "middle" }, name)));
    parts.push(make("line", { class: "now", x1: x(now.step), x2: x(now.step), y1: y(1), y2: y(0) }));
    if (threshold[i] != null) parts.push(make("line", { class: "limit", x1: x(0), x2: x(last), y1: y(threshold[i]), y2: y(threshold[i]) }));
    parts.push(...labels.map((_, other) => other).filter((other) => other !== i).slice(0, 60).map((other) => line(other, "other")), line(i, "chosen"));
    parts.push(...all.map((values, step) => make("circle", { class: "dot", cx: x(step), cy: y(values[i] ?? 0), r: step === now.step ? 6 : 4 })));
    $("chart").replaceChildren(make("svg", { class: "picture", viewBox: "0 0 440 164", role: "img",
      "aria-label": `Readouts of ${data.labels[now.label]} after every state; the table below lists them` }, ...parts));
    $("state-table").replaceChildren(table(["label", ...names], labels.map((label, place) => [data.labels[label], ...all.map((values) => number(values[place]))])));
  }

  function search() {
    const wanted = $("search").value.trim().toLowerCase();
    document.querySelectorAll("[data-label]").forEach((each) => {
      each.parentNode.hidden = !data.labels[each.dataset.label].toLowerCase().includes(wanted);
    });
  }

  /** Squares of a matrix, as dark as its entries are large, in colours of the two signs. */
  function drawMatrix(canvas, cells, positive = "124, 110, 230", negative = positive) {
    const size = data.labels.length, most = Math.max(...cells.map((cell) => Math.abs(cell[2])), 1e-9), pen = canvas.getContext("2d");
    canvas.width = canvas.height = size;
    for (const [from, to, weight] of cells) {
      pen.fillStyle = `rgba(${weight < 0 ? negative : positive}, ${0.08 + 0.92 * (Math.abs(weight) / most)})`;
      pen.fillRect(from, to, 1, 1);
    }
  }

  function start() {
    const values = data.methods.map((each) => each.faithfulness ?? 0), random = data.random ?? 0;
    const low = Math.min(random, ...values), span = Math.max(random, ...values) - low || 1, part = (value) => `${(100 * (value - low)) / span}%`;
    $("methods").append(...data.methods.map(({ title, faithfulness, chosen }, method) => make("label", {},
      make("input", { type: "radio", name: "method", value: method, checked: chosen, on: () => choose({ method }) }), make("span", {}, title),
      faithfulness == null ? make("span") : make("span", { class: "meter", "aria-hidden": "true" },
        data.random == null ? null : make("b", { css: { left: part(random) } }), make("i", { css: { left: part(faithfulness) } })),
      faithfulness == null ? make("span") : make("span", { class: "number" }, make("span", { class: "sr" }, "faithfulness "), faithfulness.toFixed(3).replace("-", "−")))));
    $("measures").append(...MEASURES.map(([name], measure) => make("label", {},
      make("input", { type: "radio", name: "measure", value: measure, checked: measure === now.measure, on: () => choose({ measure }) }), name)));
    if (!data.messages) $("measures").querySelector("label").hidden = true;
    $("measures").hidden = !data.clamped;
    $("step").max = last;
    $("step").addEventListener("input", (event) => choose({ step: Number(event.target.value) }));
    $("ticks").append(...[...data.states, "final"].map((name) => make("span", {}, name)));
    for (const id of ["settle", "settling"]) $(id).hidden = !last;
    $("effects").hidden = !data.effects;
    $("no-effects").hidden = data.effects;
    $("search").addEventListener("input", search);
    document.querySelectorAll("[data-sample]").forEach((each) => each.addEventListener("click", () => choose({ sample: Number(each.dataset.sample) })));
    if ($("prior")) {
      drawMatrix($("prior"), data.graph);
      drawMatrix($("attention"), data.attention);
      const prior = new Set(data.graph.map(([from, to]) => `${from} ${to}`)), edges = [...data.attention].sort((a, b) => b[2] - a[2]).slice(0, 40);
      $("edges").append(table(["from", "to", "attention", "in label graph"],
        edges.map(([from, to, weight]) => [data.labels[from], data.labels[to], number(weight), prior.has(`${from} ${to}`) ? "yes" : "no"])));
    }
    if ($("dependencies")) {
      const both = data.dependencies.flatMap(([a, b, weight]) => [[a, b, weight], [b, a, weight]]);
      drawMatrix($("dependencies"), both, "217, 92, 40", "58, 134, 212");
    }
    startTheme();
    addEventListener("keydown", (event) => {
      if (event.target.matches("input[type=search]") || event.ctrlKey || event.metaKey || event.altKey) return;
      const turn = { "[": -1, "]": 1 }[event.key], move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (turn) choose({ sample: (now.sample + turn + data.samples.length) % data.samples.length });
      else if (move && !event.target.matches("input, .scroll, .words")) {
        const shown = [...document.querySelectorAll("[data-label]")].filter((each) => !each.parentNode.hidden);
        const next = shown[shown.findIndex((each) => each.dataset.label == now.label) + move];
        if (next) { choose({ label: Number(next.dataset.label) }); next.focus(); }
      } else if (event.key === "/") $("search").focus();
      else return;
      event.preventDefault();
    });
    addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
    choose({ sample: 0, label: data.samples[0].labels[0] });
  }
  start();
})();
