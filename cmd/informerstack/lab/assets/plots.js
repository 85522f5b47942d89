// SPDX-License-Identifier: Apache-2.0

/** The plots over the last minute. uPlot draws them; it is given new data at most four times a second. */
import { html, Component, createRef } from "./html.js";
import { duration, number } from "./key.js";
import { TIMED_HOPS, WINDOW_S } from "./model.js";
import { t } from "./text.js";
import uPlot from "./vendor/uplot.mjs";

/** Plots shows three plots: what waits, how fast events come, and how long each hop takes. */
export function Plots({ lab }) {
  const shared = { model: lab.model, version: lab.model.samplesVersion, now: lab.now };
  const look = lab.ui.language + lab.ui.theme; // a plot has its texts and colours from its start
  return [
    html`<${Plot} key=${"depth" + look} ...${shared} name="depth" height=${68}
      series=${[["depth", 0], ["backlog", 1], ["retries", 2]]}
      columns=${[(s) => s.depth, (s) => s.backlog, (s) => s.retries]} write=${number} />`,
    html`<${Plot} key=${"rate" + look} ...${shared} name="rate" height=${68} fill
      series=${[["perSecond", 4]]} columns=${[(s) => s.perSecond]}
      write=${rate} />`,
    html`<${Plot} key=${"latency" + look} ...${shared} name="latency" height=${150}
      log write=${duration}
      series=${TIMED_HOPS.flatMap((hop, i) => [[hop, i, "p50"], [hop, i, "p99"]])}
      columns=${TIMED_HOPS.flatMap((hop) => [0, 1].map((i) => (s) => s.hopMs?.[hop]?.[i]))} />`,
  ];
}

/** AGES are the labelled seconds of the time axis. */
const AGES = [60, 40, 20, 0];

/** rate writes events per second: small rates with a fraction. */
const rate = (n) => number(n >= 100 ? Math.round(n) : Math.round((n ?? 0) * 10) / 10);

/** ceiling is the upper end of a scale: 4, or the next of 10, 20, 40, 100, 200, 400, … */
function ceiling(max) {
  if (!(max > 4)) return 4;
  const decade = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 4, 10].find((n) => n * decade >= max) * decade;
}

/** positive drops what a logarithmic scale cannot show. */
const positive = (ms) => (ms > 0 ? ms : null);

/** Plot owns one uPlot; it is created once and only given data after that. */
class Plot extends Component {
  box = createRef();

  shouldComponentUpdate(next) {
    return next.version !== this.props.version || Math.abs(next.now - this.props.now) >= 500;
  }

  componentDidMount() {
    this.plot = new uPlot(this.options(), this.data(), this.box.current);
    this.observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
    });
    this.observer.observe(this.box.current);
  }

  componentDidUpdate() {
    this.plot.setData(this.data());
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.plot.destroy();
  }

  data() {
    const { model, columns, log } = this.props;
    return model.series(...(log ? columns.map((column) => (s) => positive(column(s))) : columns));
  }

  options() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--dim"), font: "11px system-ui, sans-serif",
      grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    };
    const { log, write } = this.props;
    const decades = (u, ticks) => ticks.map((tick) => (Number.isInteger(Math.log10(tick)) ? tick : null));
    return {
      width: Math.max(this.box.current.clientWidth, 160), height: this.props.height,
      legend: { show: false }, cursor: { show: false }, padding: [8, 14, 0, 0],
      scales: {
        x: { time: true, range: () => [this.props.now / 1000 - WINDOW_S, this.props.now / 1000] },
        y: log ? { distr: 3, range: (u, min, max) => [Math.min(min || 0.1, 0.1), Math.max(max || 10, 10)] }
          : { range: (u, min, max) => [0, ceiling(max)] },
      },
      axes: [
        {
          ...axis, size: 22, splits: () => AGES.map((age) => this.props.now / 1000 - age),
          values: () => AGES.map((age) => `${-age} s`),
        },
        { ...axis, space: log ? 18 : 26, size: 46,
          ...(log
            ? { filter: decades, grid: { ...axis.grid, filter: decades } }
            : { splits: (u, i, min, max) => [0, max / 2, max] }),
          values: (u, ticks) => ticks.map((tick) => (tick == null ? "" : write(tick))) },
      ],
      series: [{}, ...this.props.series.map(([, index, quantile]) => ({
        stroke: colour("--p" + index), width: quantile === "p50" ? 1 : 1.75, spanGaps: true,
        dash: quantile === "p50" ? [3, 3] : undefined,
        fill: this.props.fill ? colour("--p" + index) + "22" : undefined,
        points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
      }))],
    };
  }

  render({ name, series, columns, model, write, log }) {
    const last = model.samples.at(-1) ?? {};
    const value = (i) => write(columns[i](last));
    const entries = [];
    series.forEach(([label, index, quantile], i) => {
      if (quantile === "p99") return;
      entries.push(html`<li key=${label}><i class=${"p" + index} aria-hidden="true"></i>${t("plot." + label)}
        <b>${value(i)}${quantile === "p50" && html` <span class="dim">· ${value(i + 1)}</span>`}</b></li>`);
    });
    const single = html`<b>${value(0)}</b>`;
    const note = log ? t("plot.quantiles") : entries.length > 1 ? t("plot.window", { s: WINDOW_S }) : single;
    return html`<section class=${"card plot plot-" + name} aria-labelledby=${"title-" + name}>
      <header><h2 id=${"title-" + name}>${t(`plot.title.${name}`)}</h2>
        <small>${note}</small></header>
      <div class="canvas" ref=${this.box} role="img" aria-label=${t(`plot.title.${name}`)}></div>
      ${entries.length > 1 && html`<ul class="legend">${entries}</ul>`}
    </section>`;
  }
}
