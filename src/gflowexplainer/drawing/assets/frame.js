// A drawing inside a notebook: one case, or several to choose from.

const {cases} = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("list");
let view = null;

function select(number) {
  view = renderCase(cases[number], true);
  document.getElementById("case").replaceChildren(view.root);
  if (list) list.selectedIndex = number;
}

if (list) {
  list.addEventListener("change", () => select(list.selectedIndex));
  const step = (by) => select((list.selectedIndex + by + cases.length) % cases.length);
  document.getElementById("back").addEventListener("click", () => step(-1));
  document.getElementById("on").addEventListener("click", () => step(1));
  document.getElementById("choice").hidden = false;
}
addEventListener("keydown", (event) => { if (event.key === "Escape") view.reset(); });
select(0);
const tell = () => parent.postMessage({gflowexplainer: document.body.getBoundingClientRect().height + 4}, "*");
new ResizeObserver(tell).observe(document.body);
