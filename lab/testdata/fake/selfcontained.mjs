// SPDX-License-Identifier: Apache-2.0

/**
 * Builds the self-contained page: one HTML file with the styles, the modules and a recording. The
 * program does the same for --html.
 *
 * A module in a data: URL cannot import a relative path, so each "./name.js" becomes a bare name,
 * "lab/name.js", and an import map gives each bare name its data: URL.
 */
import { readFileSync, readdirSync } from "node:fs";
import { createHash } from "node:crypto";

export function selfContained(assets, recording) {
  const read = (name) => readFileSync(new URL(name, assets), "utf8");
  const modules = [...readdirSync(assets), ...readdirSync(new URL("vendor/", assets)).map((name) => "vendor/" + name)]
    .filter((name) => /\.m?js$/.test(name));
  const imports = {};
  for (const name of modules) {
    const code = read(name).replace(/(from|import) "\.\/([^"]+)"/g, '$1 "lab/$2"').replace(/\n\/\/# sourceMappingURL=.*/, "");
    imports["lab/" + name] = "data:text/javascript;base64," + Buffer.from(code).toString("base64");
  }
  const map = JSON.stringify({ imports });
  const start = 'import "lab/app.js";';
  const styles = ["vendor/uplot.css", "style.css", "panels.css"].map(read).join("\n");
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hash(map)} ${hash(start)} data:; style-src ${hash(styles)}; img-src data:; base-uri 'none'`;
  const json = JSON.stringify(recording).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>informerstack laboratory</title>
<style>${styles}</style>
<script type="importmap">${map}</script>
</head>
<body>
<div id="page"></div>
<script type="application/json" id="recording">${json}</script>
<script type="module">${start}</script>
</body>
</html>
`;
}
