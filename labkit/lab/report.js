// Draws the figures in the page's own colours, and filters the table of claims. Runs offline, from a file.
const plots = [...document.querySelectorAll(".plot")];
const paper = { width: 680, autosize: false, "--ink": "#111", "--line": "#bbb" }; // between the margins of an A4 page, in CSS pixels
const screen = { width: undefined, autosize: true };

function dressed(layout, on) {
  const colour = (name) => on[name] ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const { title, ...rest } = structuredClone(layout ?? {}); // the title stands above the figure
  const line = colour("--line");
  const axes = new Set(["xaxis", "yaxis", ...Object.keys(rest).filter((key) => /^[xy]axis\d*$/.test(key))]);
  for (const name of axes) rest[name] = { ...rest[name], gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
  return {
    ...rest,
    font: { size: 13, ...rest.font, color: colour("--ink"), family: "system-ui, sans-serif" },
    margin: { l: 56, r: 24, b: 48, ...rest.margin, t: 16 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    height: 320,
    width: on.width,
    autosize: on.autosize,
  };
}

function draw(on) {
  for (const plot of plots) {
    const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
    Plotly.react(plot, data ?? [], dressed(layout, on), { responsive: true, displayModeBar: false });
  }
}

function print(starts) {
  for (const box of document.querySelectorAll(starts ? "details:not([open])" : "details[data-printed]")) {
    box.open = starts;
    box.toggleAttribute("data-printed", starts);
  }
  draw(starts ? paper : screen);
}

function filter() {
  const words = document.querySelector("#claim-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = document.querySelector("#claim-verdict").value;
  const rows = [...document.querySelectorAll("#claim-table tbody tr")];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = (verdict && row.dataset.verdict !== verdict) || !words.every((word) => text.includes(word));
  }
  document.querySelector("#claim-count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
}

draw(screen);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(screen));
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
document.querySelector("#claim-search")?.addEventListener("input", filter);
document.querySelector("#claim-verdict")?.addEventListener("change", filter);
