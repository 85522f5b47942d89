// SPDX-License-Identifier: Apache-2.0

/**
 * Serves the page with the imitation behind it, and with the headers of the real program:
 *
 *	node lab/testdata/fake/server.mjs [--port 8099] [--rate 0.7] [--objects 12]
 *	    [--readonly] [--replay FILE] [--record FILE]
 *
 * http://localhost:8099/selfcontained is the last 30 seconds as one file.
 */
import { createServer } from "node:http";
import { appendFileSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { frameOf } from "./frame.mjs";
import { Pipeline } from "./pipeline.mjs";
import { selfContained } from "./selfcontained.mjs";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "8099" }, rate: { type: "string", default: "0.7" }, objects: { type: "string", default: "12" },
    readonly: { type: "boolean" }, replay: { type: "string" }, record: { type: "string" },
  },
});
const assets = new URL("../../assets/", import.meta.url);
const lessons = JSON.parse(readFileSync(new URL("lessons.json", import.meta.url), "utf8"));
const TYPES = { js: "text/javascript", mjs: "text/javascript", css: "text/css", html: "text/html; charset=utf-8", svg: "image/svg+xml" };
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
const TOKEN = "fake-token";

const pipeline = flags.replay ? null : new Pipeline({ rate: Number(flags.rate), objects: Number(flags.objects) });
const hello = {
  version: "fake", started: new Date().toISOString(), languages: ["en", "zh"], resource: "configmaps", writable: !flags.readonly && !flags.replay,
  kinds: ["DeltaFIFO", "RealFIFO"], lessons: lessons.lessons.map((l) => l.id), token: TOKEN, replay: Boolean(flags.replay),
};
const pages = new Set();
const recent = [];
let seq = 0;
if (pipeline) {
  setInterval(() => {
    const frame = JSON.parse(JSON.stringify(frameOf(pipeline, ++seq)));
    recent.push(frame);
    if (recent.length > 300) recent.shift();
    if (flags.record) appendFileSync(flags.record, JSON.stringify({ frame }) + "\n");
    for (const page of pages) send(page, "frame", frame);
  }, 100);
  if (flags.record) appendFileSync(flags.record, JSON.stringify({ hello }) + "\n");
}

const send = (page, event, data) => page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  response.setHeader("Content-Security-Policy", CSP);
  response.setHeader("Cache-Control", "no-store");
  try {
    if (pathname === "/lab/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      send(response, "hello", hello);
      if (recent.length) send(response, "frame", recent.at(-1));
      pages.add(response);
      request.on("close", () => pages.delete(response));
    } else if (pathname === "/lab/command") {
      let body = "";
      for await (const part of request) body += part;
      if (request.headers["x-lab-token"] !== TOKEN) return reply(response, 403, { error: "wrong token" });
      pipeline.command(JSON.parse(body));
      reply(response, 200, { ok: true });
    } else if (pathname === "/lab/lessons") {
      reply(response, 200, lessons);
    } else if (pathname === "/lab/recording") {
      response.end(readFileSync(flags.replay));
    } else if (pathname === "/selfcontained") {
      response.removeHeader("Content-Security-Policy");
      response.setHeader("Content-Type", TYPES.html);
      response.end(selfContained(assets, { hello, frames: recent }));
    } else {
      const file = pathname === "/" ? "index.html" : pathname.replace(/^\/lab\/assets\//, "");
      if (file.includes("..")) return reply(response, 404, {});
      const content = readFileSync(new URL(file, assets));
      response.setHeader("Content-Type", TYPES[file.split(".").at(-1)] ?? "text/plain");
      response.end(content);
    }
  } catch (error) {
    reply(response, error.code === "ENOENT" ? 404 : 400, { error: error.message });
  }
}).listen(Number(flags.port), "127.0.0.1", () => console.log(`http://localhost:${flags.port}/`));

function reply(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}
