"use strict";
// The page: charts are drawn as they come into view, links open what they lead to, the theme can be switched.
(() => {
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new Map();

  const draw = (box) => {
    if (drawn.has(box) || !box.offsetWidth) return;
    const { kind, data } = charts[box.id];
    box.style.height = `${box.dataset.height}px`;
    const chart = echarts.init(box, null, { renderer: kind === "flame" || kind === "timeline" ? "canvas" : "svg" });
    drawn.set(box, chart);
    hotloopDraw[kind](chart, data, hotloopTheme(), box);
    box.dataset.drawn = "yes";
  };
  const drawAll = () => document.querySelectorAll(".chart").forEach(draw);
  const watch = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)), {
    rootMargin: "300px",
  });
  document.querySelectorAll(".chart").forEach((box) => watch.observe(box));
  const redraw = () => {
    for (const [box, chart] of [...drawn]) {
      chart.dispose();
      drawn.delete(box);
      draw(box);
    }
  };
  let [resized, width] = [0, innerWidth];
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone's address bar comes and goes
    width = innerWidth;
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let theme;
  addEventListener("beforeprint", () => {
    document.querySelectorAll("main > section > details.block, figure > details").forEach((one) => (one.open = true));
    [theme, root.dataset.theme] = [root.dataset.theme, "light"]; // paper is white
    redraw();
    drawAll();
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    redraw();
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });

  const open = () => {
    let target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
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
  window.hotloopReport = { drawAll, charts: Object.keys(charts).length };
})();
