(() => {
  const { suspects } = data;
  const KEY = `tg-mlc suspects ${data.key}`, MARKS = { right: "✓", wrong: "✗", unsure: "?" };
  const MOST = 6; // labels on each side
  const id = ({ row, label }) => JSON.stringify([row, label]);
  let now = 0, decisions = {};

  /** Calls a function that reads or writes decisions in the browser, and says so if it cannot. */
  function keep(action) {
    try {
      action();
      $("stored").textContent = "";
    } catch (error) {
      $("stored").textContent = `This browser keeps no decisions (${error.name}): export them before you close this page.`;
    }
  }

  const entry = (suspect) => decisions[id(suspect)] ?? {};
  const isDecided = (suspect) => Boolean(entry(suspect).decision);
  const chance = (p) => (p < 0.005 ? "< 0.01" : p > 0.995 ? "> 0.99" : number(p));
  const recorded = (value) => (value ? "present" : "absent");

  function change(update) {
    const suspect = suspects[now], changed = { ...entry(suspect), ...update };
    decisions[id(suspect)] = changed;
    if (!changed.decision && !changed.note) delete decisions[id(suspect)];
    keep(() => localStorage.setItem(KEY, JSON.stringify(decisions)));
    mark();
  }

  function decide(decision) {
    if (entry(suspects[now]).decision === decision) { change({ decision: null }); return; }
    change({ decision });
    move(1);
  }

  /** Shows the decisions, in the list and on the buttons. */
  function mark() {
    document.querySelectorAll("[data-suspect]").forEach((each) => {
      const { decision } = entry(suspects[each.dataset.suspect]);
      each.querySelector(".mark").textContent = MARKS[decision] ?? "";
      each.querySelector(".sr").textContent = decision ? `, decided: ${decision}` : "";
    });
    document.querySelectorAll("[data-decision]").forEach((each) =>
      each.setAttribute("aria-pressed", each.dataset.decision === entry(suspects[now]).decision));
    const number = suspects.filter(isDecided).length;
    $("status").textContent = `${number} of ${suspects.length} decided.`;
    $("export").disabled = !Object.keys(decisions).length;
  }

  function show(index) {
    now = index;
    const suspect = suspects[now], { label, probability, inputs, suspicion, swapped } = suspect;
    const value = recorded(suspect.recorded);
    $("place").textContent = `${now + 1} of ${suspects.length}`;
    $("label-title").textContent = `${label}: recorded as ${value}`;
    $("probability").textContent = chance(probability);
    $("verdict").textContent = `probability of “${value}”, given the inputs and the other labels; suspicion ${chance(suspicion)}`;
    $("inputs").textContent = `By the inputs alone, the probability of “${value}” is ${chance(inputs)}.`;
    $("swapped").textContent = swapped < 0.05 ? ""
      : `With probability ${chance(swapped)}, the labels of this row belong to another row; then the inputs count alone.`;
    const sign = suspect.recorded ? 1 : -1;
    const most = Math.max(...suspect.voices.map((voice) => Math.abs(voice[3])), 0.01); // less is drawn as little;
    voices($("for"), suspect.voices.filter((voice) => voice[3] * sign > 0), most);
    voices($("against"), suspect.voices.filter((voice) => voice[3] * sign < 0), most);
    $("note").value = entry(suspect).note ?? "";
    $("sample-title").textContent = suspect.title;
    document.querySelectorAll("[data-drawing]").forEach((each) => { each.hidden = each.dataset.drawing != suspect.drawing; });
    document.querySelectorAll("[data-more]").forEach((each) => { each.hidden = each.dataset.more != suspect.drawing; });
    shadeComponents(document.querySelector(`[data-drawing="${suspect.drawing}"]`), suspect.scores ?? []);
    $("shaded").textContent = suspect.scores ? `Shaded: the ${data.noun} that raise and lower “${label}”, by occlusion.` : "";
    $("scale").hidden = !suspect.scores;
    document.querySelectorAll("[data-suspect]").forEach((each) => {
      each.setAttribute("aria-pressed", each.dataset.suspect == now);
      // The list scrolls, but not the page.
      if (each.dataset.suspect == now) $("suspects").scrollTop = each.offsetTop - $("suspects").offsetTop - 80;
    });
    mark();
  }

  function voices(list, entries, most) {
    const items = entries.slice(0, MOST).map(([label, value, probability, effect]) => {
      const name = `${label}: ${recorded(value)} (${chance(value ? probability : 1 - probability)} by the inputs)`;
      return make("li", {}, ...bar(name, effect, most));
    });
    list.replaceChildren(...(items.length ? items : [make("li", { class: "muted" }, "none")]));
  }

  const visible = () => [...document.querySelectorAll("[data-suspect]")].filter((each) => !each.parentNode.hidden).map((each) => Number(each.dataset.suspect));

  /** Moves to the next record of the list, or back. */
  function move(turn) {
    const shown = visible(), next = turn > 0 ? shown.find((each) => each > now) : shown.findLast((each) => each < now);
    show(next ?? now);
  }

  function search() {
    const wanted = $("search").value.trim().toLowerCase();
    document.querySelectorAll("[data-suspect]").forEach((each) => {
      const { title, label } = suspects[each.dataset.suspect];
      each.parentNode.hidden = !`${label} ${title}`.toLowerCase().includes(wanted);
    });
  }

  /** A text as a cell of CSV. No spreadsheet takes it for a formula. */
  function cell(text) {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv() {
    const lines = [["row", ...(data.names ? ["name"] : []), "label", "recorded", "decision", "note"]];
    for (const suspect of suspects) {
      const { decision, note } = entry(suspect);
      if (!decision && !note) continue;
      const texts = data.names ? [suspect.name, suspect.label] : [suspect.label];
      lines.push([String(suspect.row), ...texts.map(cell), String(suspect.recorded), decision ?? "", cell(note ?? "")]);
    }
    return lines.map((line) => `${line.join(",")}\r\n`).join("");
  }

  function download() {
    const href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    make("a", { href, download: "decisions.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }

  function start() {
    keep(() => { decisions = JSON.parse(localStorage.getItem(KEY) ?? "{}"); });
    $("suspects").append(...suspects.map(({ label, title, suspicion }, index) => make("li", {},
      make("button", { type: "button", "data-suspect": index, css: { "--p": suspicion, "--t": 2 }, on: () => show(index) },
        make("span", {}, `${label} · ${title}`), make("span", { class: "number" }, number(suspicion)),
        make("span", { class: "mark", "aria-hidden": "true" }), make("span", { class: "sr" })))));
    document.querySelectorAll("[data-decision]").forEach((each) => each.addEventListener("click", () => decide(each.dataset.decision)));
    $("previous").addEventListener("click", () => move(-1));
    $("next").addEventListener("click", () => move(1));
    $("note").addEventListener("input", () => change({ note: $("note").value }));
    $("export").addEventListener("click", download);
    $("search").addEventListener("input", search);
    startTheme();
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
      if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key], decision = { r: "right", w: "wrong", u: "unsure" }[event.key.toLowerCase()];
      if (turn) move(turn);
      else if (decision) decide(decision);
      else if (event.key.toLowerCase() === "n") $("note").focus();
      else if (event.key === "/") $("search").focus();
      else return;
      event.preventDefault();
    });
    show(0);
  }
  start();
})();
