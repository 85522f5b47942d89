// SPDX-License-Identifier: Apache-2.0

/**
 * The worker loads the program, runs it, and reports to the page how much is loaded, and why the
 * program does not run. All other messages are between the program and the page.
 */
importScripts("wasm_exec.js"); // Go's own

const PROGRAM = "lab.wasm.gz";

const report = (message) => postMessage(JSON.stringify(message));

/** load returns the body of the compressed program. A web server may have told the browser to unpack it. */
async function load() {
  const answer = await fetch(PROGRAM);
  if (!answer.ok) throw new Error(`${PROGRAM}: ${answer.status} ${answer.statusText}`);
  const size = Number(answer.headers.get("Content-Length")) || Infinity;
  let loaded = 0;
  const counted = answer.body.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      loaded += chunk.length;
      report({ loaded: loaded / size });
      controller.enqueue(chunk);
    },
  }));
  const unpacked = answer.headers.get("Content-Encoding") === "gzip";
  return unpacked ? counted : counted.pipeThrough(new DecompressionStream("gzip"));
}

async function run() {
  const go = new Go();
  const program = new Response(await load(), { headers: { "Content-Type": "application/wasm" } });
  const { instance } = await WebAssembly.instantiateStreaming(program, go.importObject);
  await go.run(instance);
  throw new Error("the program has ended");
}

run().catch((error) => report({ failed: error.message }));
