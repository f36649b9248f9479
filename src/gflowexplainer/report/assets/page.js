// The page: choosing, sorting, filtering, themes, keys, printing.

const {cases} = JSON.parse(document.getElementById("data").textContent);
const table = document.getElementById("table");
const rows = [...table.tBodies[0].rows];
const filter = document.getElementById("filter");
let current = -1;
let view = null;

function select(number, focus) {
  const row = rows.find((each) => Number(each.dataset.case) === number);
  if (!row) return;
  if (number !== current) {
    current = number;
    view = renderCase(cases[number], true);
    document.getElementById("case").replaceChildren(view.root);
    document.getElementById("said").textContent = cases[number].name;
    rows.forEach((each) => {
      each.classList.toggle("chosen", each === row);
      each.querySelector("button").setAttribute("aria-current", String(each === row));
    });
    try { history.replaceState(null, "", "#" + (number + 1)); } catch { /* some viewers forbid it */ }
  }
  const list = document.getElementById("list");
  const head = table.tHead.offsetHeight;
  if (row.offsetTop - head < list.scrollTop) list.scrollTop = row.offsetTop - head;
  else if (row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = row.offsetTop + row.offsetHeight - list.clientHeight;
  }
  if (focus) row.querySelector("button").focus({preventScroll: true});
}

const visible = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);

function step(by, focus) {
  const list = visible();
  if (!list.length) return;
  const here = list.findIndex((row) => Number(row.dataset.case) === current);
  const next = here < 0 ? 0 : Math.min(Math.max(here + by, 0), list.length - 1);
  select(Number(list[next].dataset.case), focus);
}

rows.forEach((row) => row.addEventListener("click", () => select(Number(row.dataset.case), false)));

const heads = [...table.tHead.rows[1].cells];
heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
  const up = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach((each) => each.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const key = (row) => row.cells[column].dataset.value;
  const numeric = head.classList.contains("number");
  const compare = (a, b) => (numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, {numeric: true}));
  const sorted = [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === "" || y === "") return (x === "") - (y === ""); // what is not known stays below
    return (up ? 1 : -1) * compare(x, y) || a.dataset.case - b.dataset.case;
  });
  table.tBodies[0].append(...sorted);
}));

filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
  const count = visible().length;
  document.getElementById("count").textContent = wanted ? `${count} of ${rows.length} instances` : `${rows.length} instances`;
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target === filter;
  const sliding = event.target instanceof HTMLInputElement && !typing;
  if (event.key === "Escape") {
    if (typing && filter.value) { filter.value = ""; filter.dispatchEvent(new Event("input")); }
    view?.reset();
  } else if (typing) {
    if (event.key === "Enter" && visible().length) select(Number(visible()[0].dataset.case), true);
  } else if (event.key === "/") { event.preventDefault(); filter.focus(); }
  else if (event.key === "j") step(1, false);
  else if (event.key === "k") step(-1, false);
  else if (!sliding && event.target.closest?.("tr[data-case]") && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1, true);
  }
});

const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("gflowexplainer-theme", document.documentElement.dataset.theme); } catch { /* private */ }
  showTheme();
});
try {
  const kept = localStorage.getItem("gflowexplainer-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* private */ }
dark.addEventListener("change", showTheme);
showTheme();

const MOST_ON_PAPER = 40;
addEventListener("beforeprint", () => {
  const list = visible();
  const printed = list.slice(0, MOST_ON_PAPER).map((row) => renderCase(cases[Number(row.dataset.case)], false).root);
  if (list.length > MOST_ON_PAPER) printed.unshift(make("p", null, `The first ${MOST_ON_PAPER} of ${list.length} listed instances follow.`));
  document.getElementById("paper").replaceChildren(...printed);
  document.body.classList.add("printing");
});
addEventListener("afterprint", () => {
  document.body.classList.remove("printing");
  document.getElementById("paper").replaceChildren();
});

const asked = Number(location.hash.slice(1)) - 1;
select(cases[asked] ? asked : 0, false);
