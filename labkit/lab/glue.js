// JupyterLab reads single letters as commands (x cuts a cell) unless the focused element itself says otherwise.
const FOCUSABLE = "button, input, select, textarea, summary, a[href], [tabindex], .lk-scroll";

function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value); // unchanged values must not wake the observer
}

function mend(box) {
  box.querySelectorAll(FOCUSABLE).forEach((node) => set(node, "data-lm-suppress-shortcuts", "true"));
  for (const group of box.querySelectorAll(".widget-toggle-buttons")) {
    set(group, "role", "group");
    set(group, "aria-label", group.closest(".lk-field")?.querySelector(".lk-label")?.textContent ?? "");
    for (const each of group.querySelectorAll("button")) set(each, "aria-pressed", String(each.classList.contains("mod-active")));
  }
  for (const fold of box.querySelectorAll(".lk-fold")) set(fold, "aria-expanded", String(fold.classList.contains("mod-active")));
  for (const each of box.querySelectorAll(".lk-button")) {
    set(each, "aria-disabled", String(each.classList.contains("lk-off")));
    set(each, "aria-label", each.title); // the icon font would be read out as a strange letter
  }
  for (const node of box.querySelectorAll(".widget-text input, .noUi-handle")) {
    const control = node.closest(".jupyter-widgets"); // ipywidgets puts the tooltip on a hidden label
    set(node, "aria-label", control.querySelector("[title]")?.title ?? "");
    const shown = control.querySelector(".widget-readout")?.textContent;
    if (shown) set(node, "aria-valuetext", shown); // a log slider would read out its exponent
  }
  for (const line of box.querySelectorAll(".lk-status > *")) set(line, "role", "status");
}

export default {
  render({ el }) {
    let observer, timer;
    const attach = () => {
      const box = el.closest(".lk-box");
      if (!box) return (timer = setTimeout(attach, 30)); // the view is built before it is placed in the page
      mend(box);
      observer = new MutationObserver(() => mend(box));
      observer.observe(box, { subtree: true, childList: true, attributes: true, attributeFilter: ["class", "title", "tabindex", "aria-valuetext"] });
    };
    attach();
    return () => { clearTimeout(timer); observer?.disconnect(); };
  },
};
