// Puts one case together: what it says, the stage, ranked subgraphs, class probabilities, other explainers.

const className = (scene, k) => (scene.classes && scene.classes[k] !== undefined ? scene.classes[k] : "class " + k);

function renderCase(scene, interactive) {
  const stage = makeStage(scene, interactive);
  const what = scene.kind === "sentence" ? "words" : scene.kind === "molecule" ? "atoms" : "nodes";
  const left = make("div", null, stage.root);
  const right = make("div", {class: "right"});
  const root = make("div", {class: "case"},
    make("div", {class: "wide"},
      make("h2", null, scene.title),
      scene.note ? make("p", {class: "user"}, scene.note) : null,
      answer(scene),
      ...scene.warnings.map((text) => make("p", {class: "warning user"}, text))),
    left, right);
  const classes = make("div");
  const rows = [];
  const {main} = scene;
  let chosen = null;
  // Rows that can be chosen: parts, what would change the prediction, ranked subgraphs.
  const choose = (row, what = main, name = "") => {
    chosen = row;
    rows.forEach((each) => {
      each.classList.toggle("chosen", each === row);
      each.querySelector("button")?.setAttribute("aria-pressed", String(each === row));
    });
    classes.replaceChildren(...(what === main || !name ? [] : [sentence(scene, what, name)]), classTable(scene, what));
  };
  const choosable = (row, what, name) => {
    rows.push(row);
    if (!interactive) return row;
    row.addEventListener("click", () => {
      if (chosen === row) return reset();
      choose(row, what.only ? what : main, what.only ? name : "");
      stage.highlight(what.slots);
    });
    return row;
  };
  const press = (text) => (interactive ? make("button", {type: "button", "aria-pressed": "false"}, text) : text);
  const reset = () => { choose(null); stage.highlight(null); };

  if (interactive) {
    const panel = make("div", {class: "controls"}, stage.levels);
    stage.root.addEventListener("shown", () => choose(null));
    if (scene.truth) {
      const box = make("input", {type: "checkbox", checked: true});
      box.addEventListener("change", () => root.classList.toggle("no-truth", !box.checked));
      panel.append(make("label", null, box, " ground truth"));
    }
    if (panel.children.length) left.append(panel);
  }
  left.append(legend(scene), ...scene.notes.map((note) => make("p", {class: "quiet"}, note)));
  const body = make("tbody");
  const listed = interactive ? scene.subgraphs : scene.subgraphs.slice(0, 4);
  listed.forEach((subgraph, number) => {
    const row = make("tr", {"data-subgraph": number},
      make("td", {class: "user"}, press(subgraph.text)),
      make("td", {class: "number"}, bar(subgraph.p)),
      make("td", {class: "number"}, digits(subgraph.r)));
    body.append(choosable(row, subgraph, `with only number ${number + 1}`));
  });
  const more = scene.more_subgraphs + scene.subgraphs.length - listed.length;
  const parts = severalParts(scene);
  right.append(classes);
  if (parts.length) right.append(partTable(scene, parts, press, choosable, what));
  const below = make("div", {class: "below"}, scene.change ? changeTable(scene, press, choosable, what) : null,
    scene.features_of ? featureBars(scene.features_of) : null);
  if (below.children.length) root.append(below);
  right.append(make("h3", null, "Ranked subgraphs"), make("div", {class: "scroll ranked"}, make("table", null,
    make("thead", null, make("tr", null, make("th", {scope: "col"}, what),
      make("th", {scope: "col", class: "number"}, "probability"), make("th", {scope: "col", class: "number"}, "reward"))),
    body)));
  if (more > 0) right.append(make("p", {class: "quiet"}, `and ${more} less probable ones.`));
  if (scene.others.length) root.append(others(scene));
  choose(null);
  return {root, reset};
}

function bar(value) {
  const length = make("i");
  length.style.width = `${100 * Math.min(Math.max(value || 0, 0), 1)}%`;
  return make("span", {class: "bar"}, length, digits(value));
}

// What is predicted, because of what, whether that is enough and needed, and how sure all this is.
function answer(scene) {
  return make("dl", {class: "answer"}, ...scene.lines.flatMap(([head, text]) => [make("dt", null, head),
    make("dd", {class: `user${scene.answers[head] ? ` said-${scene.answers[head]}` : ""}`}, text)]));
}

// Lists parts, each with what the model says with only it and without it.
function partTable(scene, parts, press, choosable, what) {
  const cell = (values) => make("td", {class: "number user"}, prediction(scene, values));
  const body = parts.map((part, number) => choosable(make("tr", {"data-part": number},
    make("td", {class: "user"}, make("span", {class: "named"}, make("span", {class: `chip part-${(number % 4) + 1}`}, String(number + 1)), press(part.text))),
    cell(part.only), cell(part.without)), part, `with only part ${number + 1}`));
  return make("div", null, make("h3", null, `${parts.length} parts`), make("div", {class: "scroll plain"}, make("table", null,
    make("thead", null, make("tr", null, make("th", {scope: "col"}, what),
      make("th", {scope: "col", class: "number"}, "with only it"), make("th", {scope: "col", class: "number"}, "without it"))),
    make("tbody", null, ...body))));
}

// Says what would have to go for the prediction to change.
function changeTable(scene, press, choosable, what) {
  const {change} = scene;
  const root = make("div", null, make("h3", null, "What would change it"));
  if (!change.found) {
    root.append(make("p", {class: "quiet"}, "Nothing was found whose removal changes the prediction."));
    return root;
  }
  const noun = change.by === "edges" ? "edges" : what;
  root.append(make("div", {class: "scroll plain"}, make("table", null, make("thead", null, make("tr", null,
      make("th", {scope: "col"}, change.count === 1 ? `without this ${noun.slice(0, -1)}` : `without these ${change.count} ${noun}`),
      make("th", {scope: "col", class: "number"}, "the model says"))),
    make("tbody", null, choosable(make("tr", {"data-change": ""}, make("td", {class: "user"}, press(change.text)),
      make("td", {class: "number user"}, prediction(scene, change.prediction))), change, "")))));
  root.append(make("p", {class: "quiet"}, `${change.proof[0].toUpperCase()}${change.proof.slice(1)}` +
    (change.others ? `; ${change.others} other${change.others === 1 ? "" : "s"} of this size would do as well.` : ".")));
  return root;
}

// Draws what features inside the first subgraph contribute, as bars to both sides of a line.
function featureBars({bars, said}) {
  const most = Math.max(...bars.map(([, value]) => Math.abs(value)), 1e-9);
  const root = make("div", null, make("h3", null, "Features that count"));
  if (!bars.length) root.append(make("p", {class: "quiet"}, "No feature of the first subgraph changes the prediction."));
  const rows = bars.map(([name, value]) => {
    const length = make("i", {class: value < 0 ? "against" : null});
    length.style.width = `${(50 * Math.abs(value)) / most}%`;
    return make("tr", null, make("th", {scope: "row", class: "user"}, short(name, 28)), make("td", {class: "axis-bar"}, length),
      make("td", {class: "number"}, signed(value)));
  });
  if (rows.length) root.append(make("table", {class: "bars"}, make("tbody", null, ...rows)));
  root.append(make("p", {class: "quiet"}, `Of the first subgraph; ${said}.`));
  return root;
}

// Says in one sentence what a subgraph does to the prediction.
function prediction(scene, values) {
  if (values.length === 1) return digits(values[0]);
  const best = values.reduce((top, value, k) => (value > values[top] ? k : top), 0);
  return `${short(className(scene, best), 32)} (${digits(values[best], 2)})`;
}

function sentence(scene, subgraph, name) {
  if (!subgraph.only || !subgraph.without) return make("p", {class: "verdict"}, subgraph.text);
  const best = (values) => values.indexOf(Math.max(...values));
  const same = (values) => (scene.held === null || values.length === 1 ? null : best(values) === scene.held);
  const part = (text, values) => make("span", {class: "said"}, `${text} `, make("strong", {class: "user"}, prediction(scene, values)),
    same(values) === null ? null : same(values) ? ", kept" : ", changed");
  return make("p", {class: "verdict"}, part(name, subgraph.only), part("without it", subgraph.without));
}

// Class probabilities (or values) on the whole graph, with only the subgraph, and without it.
function classTable(scene, subgraph) {
  const columns = [["whole graph", scene.whole], ["with only it", subgraph.only], ["without it", subgraph.without]]
    .filter(([, values]) => values);
  if (!subgraph.only) return make("p", {class: "quiet"}, "What the model predicts with and without it is not known.");
  const count = subgraph.only.length;
  const regression = scene.held === null && count === 1;
  const weight = (k) => (k === scene.held ? 9 : 0) + (scene.whole || subgraph.only)[k];
  const classes = subgraph.only.map((_, k) => k).sort((a, b) => weight(b) - weight(a) || a - b);
  const shown = classes.slice(0, 5).sort((a, b) => a - b);
  const cell = (value) => make("td", {class: "number"}, regression ? digits(value) : bar(value));
  const body = make("tbody", null, ...shown.map((k) => make("tr", {class: k === scene.held ? "held" : null},
    make("th", {scope: "row", class: "user"}, regression ? "value" : short(className(scene, k), 32) + (k === scene.held ? " (explained)" : "")),
    ...columns.map(([, values]) => cell(values[k])))));
  return make("div", {class: "scroll plain"}, make("table", null, make("thead", null, make("tr", null, make("td"),
      ...columns.map(([name]) => make("th", {scope: "col", class: "number"}, name)))), body),
    classes.length > shown.length ? make("p", {class: "quiet"}, `and ${classes.length - shown.length} other classes.`) : null);
}

function legend(scene) {
  const least = scene.most === null ? 0 : -1;
  const end = scene.most === null ? ["probability 0 ", "1"] : [`adds ${digits(-scene.most)} `, signed(scene.most)];
  const scale = make("svg", {viewBox: "0 0 100 14", "aria-hidden": "true"},
    ...Array.from({length: 20}, (_, i) => make("rect", {x: i * 5, y: 1, width: 5.2, height: 12, class: scene.kind === "molecule" ? "halo" : "sample", v: least + (1 - least) * ((i + 0.5) / 20)})));
  const sample = (...drawn) => make("svg", {viewBox: "0 0 24 24", "aria-hidden": "true"}, ...drawn);
  const spot = {cx: 12, cy: 12};
  return make("div", {class: "legend"},
    make("span", null, end[0], scale, end[1]),
    scene.marked.length === 2 ? make("span", null, make("svg", {viewBox: "0 0 44 24", "aria-hidden": "true"},
      make("line", {x1: 9, y1: 12, x2: 35, y2: 12, class: "asked"}), make("circle", {cx: 9, cy: 12, r: 7, class: "node ring", v: 0}),
      make("circle", {cx: 35, cy: 12, r: 7, class: "node ring", v: 0})), "explained link") : null,
    scene.marked.length !== 1 ? null : make("span", null, sample(make("circle", {...spot, r: 9, class: "node ring", v: 0})), "explained"),
    ...scene.types.map((name, kind) => make("span", {class: "user"}, sample(outline(shape(kind, spot, 8, "node", 0), scene.colours[kind])), name)),
    scene.truth ? make("span", null, scene.kind === "sentence" ? "dashed underline: ground truth" :
      sample(make("circle", {...spot, r: 7, class: "node", v: 0}), make("circle", {...spot, r: 11, class: "truth"})),
      scene.kind === "sentence" ? "" : "ground truth", scene.found ? ` (${scene.found[0]} of ${scene.found[1]} edges found)` : "") : null);
}

function others(scene) {
  const figure = (name, nodes, edges, slots, ...said) => {
    const {root, box} = draw(scene, nodes, edges, 1, slots.length ? new Set(slots) : null, false);
    if (box) { root.setAttribute("viewBox", box.join(" ")); root.setAttribute("aria-label", `scores of ${name}`); }
    root.querySelectorAll("[tabindex]").forEach((element) => element.removeAttribute("tabindex"));
    return make("figure", null, root, make("figcaption", null, make("strong", {class: "user"}, name), ...said));
  };
  const about = ({first, shared}) => (!first ? [] : [make("div", {class: "user"}, short(first.text, 120)),
    make("div", {class: "quiet"}, `${shared[0]} of ${shared[1]} ${shared[1] === 1 ? "node" : "nodes"} shared`),
    sentence(scene, first, "with only it")]);
  const compared = scene.others.some((other) => other.first);
  const mine = scene.main;
  return make("div", {class: "wide"}, make("h3", null, compared ? "Compared" : "Other explainers"),
    make("p", {class: "quiet"}, "Edge scores of each, divided by its largest on this instance; nodes take the largest score of " +
      "their edges. Large nodes are the explanation, or the ends of as many best edges."),
    make("div", {class: compared ? "small pair" : "small"},
      figure("this explanation", scene.v, scene.q, mine.slots, ...(compared ? [make("div", {class: "user"}, short(mine.text, 120)),
        sentence(scene, mine, "with only it")] : [])),
      ...scene.others.map((other) => figure(other.name, other.p, other.q, other.slots, ...about(other)))));
}
