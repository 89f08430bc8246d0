// Draws the figures in the page's own colours, and filters the table of claims. Runs offline, from a file.
const plots = [...document.querySelectorAll(".plot")];
const paperWidth = 680; // CSS pixels between the margins of an A4 page

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function dressed(layout) {
  const { title, template, width, ...rest } = structuredClone(layout ?? {}); // the title stands above the figure
  const font = { size: 13, ...rest.font, color: ink("--ink"), family: "system-ui, sans-serif" };
  const axis = { gridcolor: ink("--line"), zerolinecolor: ink("--line"), linecolor: ink("--line"), automargin: true };
  const axes = new Set(["xaxis", "yaxis", ...Object.keys(rest).filter((key) => /^[xy]axis\d*$/.test(key))]);
  for (const name of axes) rest[name] = { ...rest[name], ...axis };
  for (const note of rest.annotations ?? []) if (!note.font?.color) note.font = { ...note.font, color: ink("--ink") };
  const clear = "rgba(0,0,0,0)";
  const margin = { l: 56, r: 24, t: 16, b: 48, ...rest.margin };
  return { ...rest, template, font, margin, height: 320, autosize: true, paper_bgcolor: clear, plot_bgcolor: clear };
}

function draw() {
  for (const plot of plots) {
    const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
    Plotly.react(plot, data ?? [], dressed(layout), { responsive: true, displayModeBar: false });
  }
}

function print(on) {
  for (const box of document.querySelectorAll(on ? "details:not([open])" : "details[data-printed]")) {
    box.open = on;
    box.toggleAttribute("data-printed", on);
  }
  for (const plot of plots) Plotly.relayout(plot, on ? { width: paperWidth, autosize: false } : { width: null, autosize: true });
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

if (plots.length) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
document.querySelector("#claim-search")?.addEventListener("input", filter);
document.querySelector("#claim-verdict")?.addEventListener("change", filter);
