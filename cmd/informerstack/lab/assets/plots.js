// SPDX-License-Identifier: Apache-2.0

/** The plots over the last minute. uPlot draws them; it is given new data at most four times a second. */
import { html, Component, createRef } from "./html.js";
import { number } from "./key.js";
import { WINDOW_S } from "./model.js";
import { t } from "./text.js";
import uPlot from "./vendor/uplot.mjs";

/** Plots shows two plots: what waits, and how fast events come. */
export function Plots({ lab }) {
  const shared = { model: lab.model, version: lab.model.samplesVersion, now: lab.now };
  const look = lab.ui.language + lab.ui.theme; // a plot has its texts and colours from its start
  return [
    html`<${Plot} key=${"depth" + look} ...${shared} name="depth"
      series=${[["depth", 0], ["backlog", 1], ["retries", 2]]}
      columns=${[(s) => s.depth, (s) => s.backlog, (s) => s.retries]} write=${number} />`,
    html`<${Plot} key=${"rate" + look} ...${shared} name="rate" fill
      series=${[["perSecond", 4]]} columns=${[(s) => s.perSecond]}
      write=${rate} />`,
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

/** HEIGHT is that of a plot without its legend, in pixels. */
const HEIGHT = 110;

/** Plot owns one uPlot; it is created once and only given data after that, while it is in view. */
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
    this.view = new IntersectionObserver((entries) => {
      this.inView = entries.at(-1).isIntersecting;
      this.componentDidUpdate();
    });
    this.view.observe(this.box.current);
  }

  componentDidUpdate() {
    if (this.inView) this.plot.setData(this.data());
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.view.disconnect();
    this.plot.destroy();
  }

  data() {
    return this.props.model.series(...this.props.columns);
  }

  options() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--dim"), font: "11px system-ui, sans-serif",
      grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    };
    return {
      width: Math.max(this.box.current.clientWidth, 160), height: HEIGHT,
      legend: { show: false }, cursor: { show: false }, padding: [8, 14, 0, 0],
      scales: {
        x: { time: true, range: () => [this.props.now / 1000 - WINDOW_S, this.props.now / 1000] },
        y: { range: (u, min, max) => [0, ceiling(max)] },
      },
      axes: [
        {
          ...axis, size: 22, splits: () => AGES.map((age) => this.props.now / 1000 - age),
          values: () => AGES.map((age) => `${-age} s`),
        },
        {
          ...axis, space: 26, size: 46, splits: (u, i, min, max) => [0, max / 2, max],
          values: (u, ticks) => ticks.map((tick) => this.props.write(tick)),
        },
      ],
      series: [{}, ...this.props.series.map(([, index]) => ({
        stroke: colour("--p" + index), width: 1.75, spanGaps: true,
        fill: this.props.fill ? colour("--p" + index) + "22" : undefined,
        points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
      }))],
    };
  }

  render({ name, series, columns, model, write }) {
    const last = model.samples.at(-1) ?? {};
    const value = (i) => write(columns[i](last));
    const entries = series.map(([label, index], i) => html`<li key=${label}>
      <i class=${"p" + index} aria-hidden="true"></i>${t("plot." + label)} <b>${value(i)}</b></li>`);
    const note = entries.length > 1 ? t("plot.window", { s: WINDOW_S }) : html`<b>${value(0)}</b>`;
    return html`<section class=${"card plot plot-" + name} aria-labelledby=${"title-" + name}>
      <header><h2 id=${"title-" + name}>${t(`plot.title.${name}`)}</h2>
        <small>${note}</small></header>
      <div class="canvas" ref=${this.box} role="img" aria-label=${t(`plot.title.${name}`)}></div>
      ${entries.length > 1 && html`<ul class="legend">${entries}</ul>`}
    </section>`;
  }
}
