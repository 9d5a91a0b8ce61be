"use strict";
// The page: charts are made larger, links open what they lead to, the theme can be switched. Without it all is there to be read.
(() => {
  const root = document.documentElement;

  // A chart is made wider within a box that scrolls; what was in the middle, or was clicked, stays in sight.
  const enlarge = (inner, zoom, middle) => {
    const plot = inner.parentElement;
    inner.style.setProperty("--zoom", Math.min(400, Math.max(1, zoom)));
    plot.scrollLeft = middle * inner.offsetWidth - plot.clientWidth / 2;
    plot.tabIndex = zoom > 1 ? 0 : -1;
  };
  const seen = (inner) => (inner.parentElement.scrollLeft + inner.parentElement.clientWidth / 2) / inner.offsetWidth;
  const zoomOf = (inner) => Number(inner.style.getPropertyValue("--zoom")) || 1;
  document.querySelectorAll(".zooms").forEach((chart) => {
    const inner = chart.querySelector(".inner");
    const controls = Object.assign(document.createElement("div"), { className: "zoom" });
    controls.setAttribute("role", "group");
    controls.setAttribute("aria-label", "Zoom");
    for (const [text, label, factor] of [["\u2212", "Zoom out", 0.5], ["+", "Zoom in", 2]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      button.setAttribute("aria-label", label);
      button.addEventListener("click", () => enlarge(inner, zoomOf(inner) * factor, seen(inner)));
      controls.append(button);
    }
    chart.parentElement.prepend(controls);
    if (!chart.classList.contains("flames")) return;
    inner.addEventListener("click", ({ target }) => {
      if (target.tagName !== "I") return;
      const [left, width] = [parseFloat(target.style.left), parseFloat(target.style.width)];
      const name = target.title.split(": ")[0];
      target.textContent ||= name;
      enlarge(inner, 100 / width, (left + width / 2) / 100);
    });
  });

  let theme;
  addEventListener("beforeprint", () => {
    document.querySelectorAll("main > section > details.block, figure > details").forEach((one) => (one.open = true));
    theme = root.dataset.theme;
    root.dataset.theme = "light"; // paper is white
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const spy = new IntersectionObserver(
    (entries) =>
      entries.forEach((entry) => {
        if (!entry.isIntersecting) return;
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }),
    { rootMargin: "-20% 0px -70% 0px" },
  );
  document.querySelectorAll("main > section[id]").forEach((section) => spy.observe(section));
})();
