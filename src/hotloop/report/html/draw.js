"use strict";
// How each kind of chart is drawn with ECharts. Text of the program's reaches the page as text nodes only.
const hotloopTheme = () => {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (_, name) => style.getPropertyValue(`--${String(name)}`).trim() });
};

const hotloopDraw = (() => {
  const round = (value, digits = 3) => Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
  const time = (ms) => (ms >= 1000 ? `${round(ms / 1000)} s` : ms >= 1 ? `${round(ms)} ms` : `${round(ms * 1000)} us`);
  const big = (value) => {
    for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (value >= size) return `${round(value / size)} ${unit}`;
    return round(value);
  };
  const bytes = (mib) => (mib >= 1024 ? `${round(mib / 1024)} GiB` : mib >= 1 || !mib ? `${round(mib)} MiB` : `${round(mib * 1024)} KiB`);
  const narrow = (box) => box.offsetWidth < 560;
  const say = (...lines) => {
    const box = document.createElement("div");
    for (const line of lines) box.append(Object.assign(document.createElement("div"), { textContent: line }));
    return box;
  };
  const base = (theme) => ({
    animation: false,
    // The page's own font by name: with "inherit" widths are measured in another one, and labels are cut.
    textStyle: { color: theme.ink, fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 },
    tooltip: {
      trigger: "item", confine: true, backgroundColor: theme.card, borderColor: theme.line,
      textStyle: { color: theme.ink, fontSize: 12 }, extraCssText: "white-space:normal;max-width:22rem;overflow-wrap:anywhere",
    },
  });
  const axis = (theme, more = {}) => ({
    axisLine: { lineStyle: { color: theme.line } }, axisTick: { show: false },
    axisLabel: { color: theme.soft, hideOverlap: true, ...more.axisLabel },
    splitLine: { lineStyle: { color: theme.grid } }, nameTextStyle: { color: theme.soft }, nameLocation: "middle",
    ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "axisLabel")),
  });
  const legend = (theme, more = {}) => ({ top: 0, left: 0, icon: "roundRect", itemWidth: 12, itemHeight: 8, textStyle: { color: theme.soft }, type: "plain", ...more });
  const zoom = (theme) => [
    { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl" },
    { type: "slider", height: 18, bottom: 4, filterMode: "weakFilter", borderColor: theme.line, fillerColor: `${theme.accent}22`,
      handleStyle: { color: theme.accent }, textStyle: { color: theme.soft }, brushSelect: false, showDataShadow: false, labelFormatter: "" },
  ];
  const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
  // An interval as a line with ends over a horizontal bar, and the figure behind it. A row is [place, low, high].
  const whisker = (theme, figures) => (params, api) => {
    const [from, to] = [api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)])];
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: theme.ink, lineWidth: 1.5 } });
    const text = { type: "text", style: { text: figures[api.value(0)], x: to[0] + 8, y: to[1], verticalAlign: "middle", fill: theme.ink, fontWeight: 600, fontSize: 12 } };
    const plain = to[0] - from[0] < 0.5;
    return { type: "group", children: plain ? [text] : [line(from[0], from[1], to[0], to[1]), line(from[0], from[1] - 5, from[0], from[1] + 5), line(to[0], to[1] - 5, to[0], to[1] + 5), text] };
  };

  const waterfall = (chart, data, theme, box) => {
    const [ratio, low, high] = data.confirmed;
    const names = ["as it was", ...data.steps.map((step) => step.name), "confirmed", ...data.refused.map((one) => `${one.name}, refused`)];
    const last = data.steps.length + 1;
    const span = (from, to) => [Math.min(from, to), Math.max(from, to)];
    const bars = [[0, 1], ...data.steps.map((step) => span(step.from, step.to)), [0, ratio], ...data.refused.map((one) => span(1, one.ratio ?? 1))];
    const colors = [theme.other, ...data.steps.map((step) => (step.to >= step.from ? theme.optimizer : theme.communication)), theme.good];
    const said = ["1.00x", ...data.steps.map((step) => `${step.to.toFixed(2)}x`), `${ratio.toFixed(2)}x`, ...data.refused.map((one) => [one.ratio === null ? "" : `${one.ratio.toFixed(2)}x`, narrow(box) ? "" : one.word].filter(Boolean).join(" "))];
    const tip = (at) => at === 0 ? say("the program as it was")
      : at < last ? say(data.steps[at - 1].name, `factor ${data.steps[at - 1].factor}`)
      : at === last ? say(`confirmed in fresh processes: ${ratio.toFixed(2)}x [${low.toFixed(2)}, ${high.toFixed(2)}]`)
      : say(data.refused[at - last - 1].name, data.refused[at - last - 1].reason);
    const look = (at) => at <= last ? { color: colors[at], borderRadius: 3 } : { color: "transparent", borderColor: theme.soft, borderType: "dashed", borderWidth: 1.2, borderRadius: 3 };
    chart.setOption({
      ...base(theme),
      grid: { left: 8, right: data.refused.length && !narrow(box) ? 170 : 64, top: 8, bottom: 38, containLabel: true },
      xAxis: axis(theme, { type: "value", min: 0, name: "times as fast as the original", nameGap: 26, axisLabel: { formatter: "{value}x" } }),
      yAxis: axis(theme, { type: "category", inverse: true, data: names, splitLine: { show: false },
        axisLabel: { color: (value, at) => (at > last ? theme.soft : theme.ink), width: narrow(box) ? 112 : 230, overflow: "truncate", hideOverlap: false } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ dataIndex }) => tip(dataIndex) },
      series: [
        { type: "bar", stack: "a", silent: true, itemStyle: { color: "transparent" }, data: bars.map(([from]) => from), barWidth: "58%" },
        { type: "bar", stack: "a", barMinWidth: 2, data: bars.map(([from, to], at) => ({ value: to - from, itemStyle: look(at) })),
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.soft, type: "dashed" }, data: [{ xAxis: 1 }] } },
        { type: "custom", silent: true, z: 5, clip: false, renderItem: whisker(theme, said),
          data: [[0, 1, 1], ...data.steps.map((step, at) => [at + 1, Math.min(step.low, step.to), Math.max(step.high, step.to)]), [last, low, high], ...data.refused.map((one, at) => [last + 1 + at, Math.min(one.low, one.ratio ?? 1), Math.max(one.high, one.ratio ?? 1, 1)])], encode: { x: [1, 2], y: 0 } },
      ],
    });
  };

  const phases = (chart, data, theme, box) => {
    const rows = data.rows.map((row) => row.name);
    const total = data.rows.map((row) => Object.values(row.parts).reduce((sum, one) => sum + one, 0) * 1e3);
    chart.setOption({
      ...base(theme),
      legend: legend(theme),
      grid: { left: 8, right: 70, top: narrow(box) ? 56 : 34, bottom: 22, containLabel: true },
      xAxis: axis(theme, { type: "value", axisLabel: { formatter: time } }),
      yAxis: axis(theme, { type: "category", inverse: true, data: rows, splitLine: { show: false }, axisLabel: { color: theme.ink } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ seriesName, value, dataIndex }) => say(rows[dataIndex], `${seriesName}: ${time(value)} (${((100 * value) / total[dataIndex]).toFixed(1)}%)`) },
      series: data.phases.map((phase, number) => ({
        name: phase, type: "bar", stack: "step", barWidth: 30, itemStyle: { color: theme[phase] },
        data: data.rows.map((row) => (row.parts[phase] ?? 0) * 1e3),
        label: number === data.phases.length - 1
          ? { show: true, position: "right", color: theme.ink, fontWeight: 600, formatter: ({ dataIndex }) => time(total[dataIndex]) } : undefined,
      })),
    });
  };

  const KINDS = ["steady", "warm-up", "irregular", "profiled", "end only"];
  const COLORS = ["forward", "other", "data", "transfer", "backward", "communication", "optimizer", "accent"];
  const steps = (chart, data, theme) => {
    const many = data.series.length > 1;
    const shown = data.series.flatMap((one) => one.y).sort((a, b) => a - b);
    const top = Math.max(shown[Math.floor(shown.length * 0.99)] ?? 1, (shown[Math.floor(shown.length / 2)] ?? 1) * 2);
    const edge = Number((top * 1.6).toPrecision(1));
    const above = shown.at(-1) > edge;
    const line = (places, color, label) => places.map((at) => ({ xAxis: at, lineStyle: { color }, label: { show: false }, name: label }));
    const marks = [...line(data.epochs, theme.accent, "epoch"), ...line(data.evaluations, theme.transfer, "evaluation"), ...line(data.checkpoints, theme.optimizer, "checkpoint")];
    const flags = [["epoch start", theme.accent, data.epochs], ["evaluation", theme.transfer, data.evaluations], ["checkpoint", theme.optimizer, data.checkpoints]];
    chart.setOption({
      ...base(theme),
      legend: legend(theme, { data: [...data.series.map((one) => one.name), ...flags.filter(([, , places]) => places.length).map(([name]) => name)] }),
      grid: { left: 8, right: 14, top: 30, bottom: 58, containLabel: true },
      xAxis: axis(theme, { type: "value", name: "step", nameGap: 24, min: 0, max: "dataMax", splitLine: { show: false } }),
      yAxis: axis(theme, { type: "value", min: 0, max: above ? edge : undefined, axisLabel: { formatter: time } }),
      dataZoom: zoom(theme),
      tooltip: { ...base(theme).tooltip, formatter: ({ seriesName, value }) => value ? say(many ? seriesName : "", `step ${value[0]}: ${time(value[2])}`, KINDS[value[3]]) : "" },
      series: [
        ...data.series.map((one, number) => ({
          name: one.name, type: many ? "line" : "scatter", symbolSize: many ? 2 : 4, showSymbol: !many, large: false, clip: true,
          lineStyle: { width: 1 }, color: theme[COLORS[number % COLORS.length]],
          // Above the edge an outlier is drawn on it, hollow: its own time is in the tooltip.
          data: one.x.map((x, at) => {
            const over = above && one.y[at] > edge;
            const plain = one.kind[at] === 0 || one.kind[at] === 4;
            return { value: [x, over ? edge : one.y[at], one.y[at], one.kind[at]], symbol: over ? "triangle" : "circle", symbolSize: over ? 7 : undefined,
              itemStyle: plain ? undefined : { color: one.kind[at] === 1 ? theme.other : theme.data } };
          }),
          markLine: number ? undefined : { silent: true, symbol: "none", animation: false, lineStyle: { type: "solid", width: 1, opacity: 0.55 }, data: marks },
        })),
        ...flags.filter(([, , places]) => places.length).map(([name, color]) => ({ name, type: "line", color, data: [], symbol: "none" })),
      ],
    });
  };

  const distribution = (chart, data, theme) => {
    const middles = data.counts.map((count, at) => [data.edges[at], data.edges[at + 1], count]);
    const line = (name) => ({ name, xAxis: data[name], label: { formatter: name, color: theme.ink, position: "end" } });
    chart.setOption({
      ...base(theme),
      grid: { left: 26, right: 18, top: 24, bottom: 36, containLabel: true },
      xAxis: axis(theme, { type: "value", scale: true, min: data.edges[0], max: Math.max(data.edges.at(-1), data.p99), name: "step time", nameGap: 24, axisLabel: { formatter: time }, splitLine: { show: false } }),
      yAxis: axis(theme, { type: "value", name: "steps", nameGap: 34, minInterval: 1 }),
      tooltip: { ...base(theme).tooltip, formatter: ({ value }) => (value ? say(`${time(value[0])} to ${time(value[1])}: ${value[2]} steps`) : "") },
      series: [{
        type: "custom", data: middles, encode: { x: [0, 1], y: 2 },
        renderItem: (params, api) => {
          const [x, y] = api.coord([api.value(0), api.value(2)]);
          const [right, zero] = api.coord([api.value(1), 0]);
          return { type: "rect", shape: { x: x + 0.5, y, width: Math.max(1, right - x - 1), height: zero - y }, style: { fill: theme.forward } };
        },
        markLine: { silent: true, symbol: "none", lineStyle: { color: theme.accent, type: "dashed" }, data: ["p50", "p95", "p99"].map(line) },
      }],
    });
  };

  const bars = (chart, data, theme, box) => {
    const names = data.rows.map(([name]) => name);
    chart.setOption({
      ...base(theme),
      grid: { left: 8, right: 66, top: 6, bottom: 36, containLabel: true },
      xAxis: axis(theme, { type: "value", name: data.unit, nameGap: 24, axisLabel: { formatter: big } }),
      yAxis: axis(theme, { type: "category", inverse: true, data: names, splitLine: { show: false }, axisLabel: { color: theme.ink, width: narrow(box) ? 104 : 200, overflow: narrow(box) ? "truncate" : "break" } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ name, value }) => say(name, `${round(Number(value))} ${data.unit}`) },
      series: [
        { type: "bar", barWidth: "55%", data: data.rows.map(([name, value]) => ({ value, itemStyle: { borderRadius: 3, color: name === "the program now" || name === "before" ? theme.other : name.startsWith("loader") ? theme.data : theme.forward } })) },
        { type: "custom", silent: true, z: 5, clip: false, renderItem: whisker(theme, data.rows.map(([, value]) => round(value))), encode: { x: [1, 2], y: 0 },
          data: data.rows.map(([, value, low, high], at) => [at, low ?? value, high ?? value]) },
      ],
    });
  };

  const roofline = (chart, data, theme) => {
    const bend = data.peak / data.bandwidth;
    const xs = data.points.map((point) => point.intensity);
    const [left, right] = [Math.min(...xs, bend) / 4, Math.max(...xs, bend) * 4];
    chart.setOption({
      ...base(theme),
      grid: { left: 14, right: 26, top: 20, bottom: 42, containLabel: true },
      xAxis: axis(theme, { type: "log", min: left, max: right, name: "FLOP per byte", nameGap: 26, axisLabel: { formatter: (value) => round(value, 2) } }),
      yAxis: axis(theme, { type: "log", name: "FLOP/s", nameGap: 44, axisLabel: { formatter: big } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ data: point }) => (point.name ? say(point.name, `${big(point.value[1])}FLOP/s, ${(100 * point.share).toFixed(1)}% of the time`) : "") },
      series: [
        { type: "line", symbol: "none", silent: true, color: theme.accent, data: [[left, left * data.bandwidth], [bend, data.peak], [right, data.peak]] },
        { type: "scatter", color: theme.forward, data: data.points.map((point) => ({ name: point.name, share: point.share, value: [point.intensity, point.rate], symbolSize: 8 + 26 * Math.sqrt(point.share), itemStyle: { opacity: 0.75 } })) },
      ],
    });
  };

  const curves = (chart, data, theme) => {
    const colors = { original: theme.other, "original again": theme.forward, "with the plan": theme.optimizer };
    const pick = (values) => data.x.map((x, at) => [x, values[at]]);
    chart.setOption({
      ...base(theme),
      legend: legend(theme, { data: data.lines.map((line) => line.name) }),
      grid: { left: 26, right: 14, top: 30, bottom: 58, containLabel: true },
      xAxis: axis(theme, { type: "value", name: "step", nameGap: 24, min: data.x[0], max: data.x.at(-1), splitLine: { show: false } }),
      yAxis: axis(theme, { type: "value", scale: true, name: data.name, nameGap: 48, axisLabel: { formatter: (value) => `${round(value)}${data.unit}` } }),
      dataZoom: zoom(theme),
      tooltip: { ...base(theme).tooltip, trigger: "axis", formatter: (points) => say(`step ${points[0].value[0]}`, ...points.filter((one) => one.seriesName in Object.fromEntries(data.lines.map((line) => [line.name, 1]))).map((one) => `${one.seriesName}: ${round(one.value[1] ?? NaN, 5)}${data.unit}`)) },
      series: [
        { name: "floor", type: "custom", silent: true, z: 1, data: data.x.slice(1).map((x, at) => [data.x[at], data.low[at], data.high[at], x, data.low[at + 1], data.high[at + 1]]).filter((row) => !row.includes(null)), encode: { x: [0, 3], y: [1, 2, 4, 5] },
          renderItem: (params, api) => ({ type: "polygon", shape: { points: [api.coord([api.value(0), api.value(1)]), api.coord([api.value(0), api.value(2)]), api.coord([api.value(3), api.value(5)]), api.coord([api.value(3), api.value(4)])] }, style: { fill: `${theme.forward}40` } }) },
        ...data.lines.map((line, at) => ({ name: line.name, type: "line", symbol: "none", z: 3 + at, color: colors[line.name], lineStyle: { width: line.name === "with the plan" ? 2.2 : 1.4, type: line.name === "original again" ? "dashed" : "solid" }, data: pick(line.y) })),
      ],
    });
  };

  const lines = (chart, data, theme) => {
    const many = data.lines.length > 1;
    const when = (value) => (data.scale === "ms" ? time(value) : `${round(value)} s`);
    const colors = { "as it was": theme.other, "with the plan": theme.optimizer };
    chart.setOption({
      ...base(theme),
      legend: legend(theme, { show: many }),
      grid: { left: 8, right: 14, top: many ? 30 : 12, bottom: 36, containLabel: true },
      xAxis: axis(theme, { type: "value", name: data.axis, nameGap: 24, min: 0, max: "dataMax", splitLine: { show: false }, axisLabel: data.scale === "ms" ? { formatter: time } : {} }),
      yAxis: axis(theme, { type: "value", min: 0, axisLabel: { formatter: bytes } }),
      tooltip: { ...base(theme).tooltip, trigger: "axis", formatter: (points) => say(when(points[0].value[0]), ...points.map((one) => `${one.seriesName}: ${bytes(one.value[1] ?? NaN)}`)) },
      series: data.lines.map((line, at) => ({ name: line.name, type: "line", step: data.scale === "ms" ? "end" : false, symbol: "none", color: colors[line.name] ?? theme[COLORS[at % COLORS.length]], areaStyle: many ? undefined : { opacity: 0.12 },
        data: (line.x ?? data.x).map((x, place) => [x, line.y[place]]),
        markLine: at || !data.marks ? undefined : { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.soft, type: "dashed", opacity: 0.6 }, data: data.marks.map((xAxis) => ({ xAxis })) },
        markArea: at || !data.shaded ? undefined : { silent: true, itemStyle: { color: `${theme.other}22` }, data: [[{ xAxis: data.shaded[0] }, { xAxis: data.shaded[1] }]] } })),
    });
  };

  const stacks = (chart, data, theme, box) => {
    const colors = [theme.forward, theme.backward, theme.optimizer, theme.other, theme.data];
    const total = data.rows.map((row) => row.parts.reduce((sum, one) => sum + one, 0));
    chart.setOption({
      ...base(theme),
      legend: legend(theme),
      grid: { left: 8, right: 76, top: narrow(box) ? 56 : 34, bottom: 22, containLabel: true },
      xAxis: axis(theme, { type: "value", axisLabel: { formatter: bytes } }),
      yAxis: axis(theme, { type: "category", inverse: true, data: data.rows.map((row) => row.name), splitLine: { show: false },
        axisLabel: { color: theme.ink, width: narrow(box) ? 120 : 260, overflow: "truncate", hideOverlap: false, interval: 0 } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ seriesName, value, dataIndex }) => say(data.rows[dataIndex].name, `${seriesName}: ${bytes(value)} of ${bytes(total[dataIndex])}`) },
      series: data.parts.map((part, number) => ({
        name: part, type: "bar", stack: "held", barWidth: "62%", color: colors[number % colors.length], data: data.rows.map((row) => row.parts[number]),
        label: number === data.parts.length - 1 ? { show: true, position: "right", color: theme.ink, formatter: ({ dataIndex }) => bytes(total[dataIndex]) } : undefined,
      })),
    });
  };

  const SPANS = { data: "data", iterator: "data", transfer: "transfer", forward: "forward", evaluation: "transfer", evaluate: "transfer", backward: "backward", optimizer: "optimizer", communication: "communication", batch: "data" };
  const HUES = { operators: 212, device: 268 };
  const timeline = (chart, data, theme) => {
    const kinds = data.rows.map((row) => row.kind);
    const hash = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 0);
    const paint = (name, kind) => SPANS[name] ? theme[SPANS[name]] : (HUES[kind] === undefined ? theme.other : `hsl(${HUES[kind] - 22 + (hash(name) % 44)} ${44 + (hash(name) % 20)}% ${46 + (hash(name) % 14)}%)`);
    const phases = data.names.filter((name) => SPANS[name] && name !== "batch");
    chart.setOption({
      ...base(theme),
      legend: legend(theme, { data: phases, selectedMode: false }),
      grid: { left: 8, right: 14, top: 34, bottom: 52, containLabel: true },
      xAxis: axis(theme, { type: "value", min: 0, max: "dataMax", axisLabel: { formatter: time } }),
      yAxis: axis(theme, { type: "category", inverse: true, data: data.rows.map((row, at) => at), splitLine: { show: false },
        axisLabel: { color: theme.ink, interval: 0, hideOverlap: false, formatter: (at) => data.rows[at]?.name ?? "" } }),
      dataZoom: zoom(theme),
      tooltip: { ...base(theme).tooltip, formatter: ({ value }) => (value ? say(data.names[value[4]], time(value[2] - value[1])) : "") },
      series: [
        { type: "custom", clip: true, encode: { x: [1, 2], y: 0 }, data: data.boxes.map(([row, begin, length, name]) => [row, begin, begin + length, 0, name]),
          renderItem: (params, api) => {
            const [x, y] = api.coord([api.value(1), api.value(0)]);
            const right = api.coord([api.value(2), api.value(0)])[0];
            const name = data.names[api.value(4)];
            const width = Math.max(1, right - x);
            return { type: "rect", shape: { x, y: y - 10, width, height: 20, r: width > 6 ? 2 : 0 }, style: { fill: paint(name, kinds[api.value(0)]) },
              textContent: width > 50 ? { style: { text: clip(name.replace(/^aten::/, ""), Math.floor(width / 6.4)), fill: "#fff", fontSize: 11, textShadowColor: "#0008", textShadowBlur: 3 } } : undefined, textConfig: { position: "inside" } };
          } },
        ...phases.map((name) => ({ name, type: "bar", data: [], color: paint(name) })),
      ],
    });
  };

  const flame = (chart, data, theme, box) => {
    const depth = Math.max(...data.boxes.map((box) => box[0]));
    const hue = (name) => {
      const phase = name.startsWith("[") && theme[name.slice(1, -1)];
      if (phase) return phase;
      let sum = 0;
      for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
      return `hsl(${18 + (sum % 34)} ${62 + (sum % 18)}% ${56 + (sum % 13)}%)`;
    };
    let [from, to] = [0, data.total];
    const show = () =>
      chart.setOption({
        ...base(theme),
        grid: { left: 4, right: 4, top: 4, bottom: 4 },
        xAxis: { type: "value", min: from, max: to, show: false },
        yAxis: { type: "value", min: 0, max: depth + 1, inverse: true, show: false },
        tooltip: { ...base(theme).tooltip, formatter: ({ value }) => say(data.names[value[3]], `${time(value[2] * 1e3)}, ${((100 * value[2]) / data.total).toFixed(1)}%`) },
        series: [{
          type: "custom", data: data.boxes, encode: { x: 1, y: 0 }, clip: true,
          renderItem: (params, api) => {
            const [begin, end] = [Math.max(from, api.value(1)), Math.min(to, api.value(1) + api.value(2))];
            if (end <= begin) return undefined;
            const [x, y] = api.coord([begin, api.value(0)]);
            const [right, bottom] = api.coord([end, api.value(0) + 1]);
            const name = data.names[api.value(3)];
            const width = right - x;
            return { type: "rect", shape: { x, y, width: Math.max(0.5, width - 0.5), height: bottom - y - 1, r: 1 }, style: { fill: hue(name) },
              textContent: width > 34 ? { style: { text: clip(name, Math.floor(width / 6.2)), fill: "#1b1206", fontSize: 11 } } : undefined,
              textConfig: { position: "insideLeft", distance: 4 } };
          },
        }],
      });
    const within = ([, begin, length], one) => one[1] >= begin - 1e-9 && one[1] + one[2] <= begin + length + 1e-9;
    const zoomTo = (one) => {
      [from, to] = [one[1], one[1] + one[2]];
      show();
      offer(one);
    };
    // The same by keyboard: a button for what the zoomed box stands in, and for each of the widest below it.
    const controls = document.createElement("div");
    const offer = (one) => {
      const focused = controls.contains(document.activeElement);
      const above = data.boxes.find((other) => other[0] === one[0] - 1 && within(other, one));
      const below = data.boxes.filter((other) => other[0] === one[0] + 1 && within(one, other)).sort((a, b) => b[2] - a[2]).slice(0, 6);
      const button = (text, to) => {
        const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
        made.addEventListener("click", () => zoomTo(to));
        return made;
      };
      controls.replaceChildren(
        ...(above ? [button(`out of ${clip(data.names[one[3]], 40)}`, above)] : []),
        ...below.map((box) => button(`${clip(data.names[box[3]], 40)} ${((100 * box[2]) / data.total).toFixed(1)}%`, box)),
      );
      if (focused) controls.querySelector("button")?.focus();
    };
    controls.className = "zoom";
    controls.setAttribute("role", "group");
    controls.setAttribute("aria-label", "Zoom");
    box.parentElement.querySelector(".zoom")?.remove();
    box.after(controls);
    zoomTo(data.boxes[0]);
    chart.on("click", ({ value }) => zoomTo(value));
  };

  const predictions = (chart, data, theme) => {
    const all = data.points.flatMap((point) => [point.predicted[0], point.measured[0]]);
    const [low, high] = [Math.min(1, ...all) * 0.92, Math.max(1, ...all) * 1.08];
    const points = data.points.map((point) => [point.predicted[0], point.measured[0], ...point.predicted.slice(1), ...point.measured.slice(1)]);
    chart.setOption({
      ...base(theme),
      grid: { left: 14, right: 26, top: 14, bottom: 42, containLabel: true },
      xAxis: axis(theme, { type: "value", min: low, max: high, name: "predicted", nameGap: 26, axisLabel: { formatter: (value) => `${round(value)}x` } }),
      yAxis: axis(theme, { type: "value", min: low, max: high, name: "measured", nameGap: 40, axisLabel: { formatter: (value) => `${round(value)}x` } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ dataIndex, seriesType }) => { const point = data.points[dataIndex]; const say3 = (one) => `${one[0].toFixed(2)}x [${one[1].toFixed(2)}, ${one[2].toFixed(2)}]`; return seriesType === "line" ? "" : say(point.name, `predicted ${say3(point.predicted)}`, `measured ${say3(point.measured)}`); } },
      series: [
        { type: "line", silent: true, symbol: "none", lineStyle: { color: theme.soft, type: "dashed", width: 1 }, data: [[low, low], [high, high]] },
        { type: "custom", silent: true, clip: true, data: points, encode: { x: [0], y: [1] },
          renderItem: (params, api) => {
            const line = (a, b) => { const [p, q] = [api.coord(a), api.coord(b)]; return { type: "line", shape: { x1: p[0], y1: p[1], x2: q[0], y2: q[1] }, style: { stroke: `${theme.forward}99`, lineWidth: 1.3 } }; };
            const v = (at) => api.value(at);
            return { type: "group", children: [line([v(2), v(1)], [v(3), v(1)]), line([v(0), v(4)], [v(0), v(5)])] };
          } },
        { type: "scatter", color: theme.forward, symbolSize: 10, data: points.map((point) => point.slice(0, 2)) },
      ],
    });
  };

  const blocks = (chart, data, theme) => {
    let at = 0;
    const all = data.pairs.flat();
    const edge = Math.max(...all.map((value) => Math.abs(value - 1)), 0.05) * 1.15;
    chart.setOption({
      ...base(theme),
      legend: legend(theme, { show: data.pairs.length > 1 && data.pairs.length < 9 }),
      grid: { left: 8, right: 14, top: 26, bottom: 22, containLabel: true },
      xAxis: axis(theme, { type: "value", minInterval: 1, min: 0, max: all.length + 1, splitLine: { show: false }, axisLabel: { show: false } }),
      yAxis: axis(theme, { type: "value", min: Math.max(0, 1 - edge), max: 1 + edge, axisLabel: { formatter: (value) => `${value.toFixed(2)}x` } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ seriesName, value }) => (value ? say(seriesName, `${value[1].toFixed(3)}x`) : "") },
      series: data.pairs.map((pair, number) => ({
        name: `pair ${number + 1}`, type: "scatter", symbolSize: 8, color: theme[COLORS[number % COLORS.length]], data: pair.map((value) => [++at, value]),
        markLine: number ? undefined : { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.soft, type: "dashed" }, data: [{ yAxis: 1 }] },
      })),
    });
  };

  const holds = (chart, data, theme) => {
    const series = [["with it", data.with, theme.optimizer], ["without it", data.without, theme.other]];
    chart.setOption({
      ...base(theme),
      legend: legend(theme),
      grid: { left: 8, right: 14, top: 26, bottom: 36, containLabel: true },
      xAxis: axis(theme, { type: "value", name: "hold", nameGap: 24, min: 0, minInterval: 1, max: "dataMax", splitLine: { show: false } }),
      yAxis: axis(theme, { type: "value", min: 0, axisLabel: { formatter: time } }),
      tooltip: { ...base(theme).tooltip, formatter: ({ seriesName, value }) => say(`hold ${value[0]}, ${seriesName}`, time(value[1])) },
      series: series.map(([name, points, color]) => ({ name, type: "scatter", symbolSize: 6, color, data: points })),
    });
  };

  return { waterfall, phases, steps, distribution, bars, roofline, curves, lines, stacks, timeline, flame, predictions, blocks, holds };
})();
