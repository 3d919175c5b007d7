// The main flow, as a user of openapi-typescript and openapi-fetch writes it:
// upload a file, submit a job that reads it, list, wait, download the result.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

type Job = components["schemas"]["Job"];

const baseUrl = need(process.env["MOLRUN_URL"], "MOLRUN_URL");
const api = createClient<paths>({ baseUrl, headers: { "x-api-key": need(process.env["MOLRUN_KEY"], "MOLRUN_KEY") } });
const text = "one two three\n";

function need<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`there is no ${what}`);
  return value;
}

function same(got: unknown, want: unknown, what: string): void {
  if (got !== want) throw new Error(`${what} is ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// answer returns the data of a response, or throws what the service says.
function answer<T>(response: { data?: T; error?: components["schemas"]["Error"] | components["schemas"]["ValidationError"] }): T {
  const { data, error } = response;
  if (error !== undefined) {
    throw new Error("detail" in error ? error.detail.map((d) => `${d.loc.join(".")}: ${d.msg}`).join("; ") : error.error.message);
  }
  return need(data, "data");
}

async function upload(): Promise<string> {
  const created = answer(await api.PUT("/upload/{filename}", { params: { path: { filename: "words.txt" }, query: { folder: "from ts" } } }));
  const sent = await fetch(created.uploadUrl, { method: "PUT", body: text, headers: created.instructions.headers });
  same(sent.status, 200, "the status of the PUT");
  const file = answer(await api.POST("/upload/{fileId}/complete", { params: { path: { fileId: created.fileId } }, body: { size: text.length } }));
  same(file.size, text.length, "the size");
  return `${file.folder}/${file.filename}`;
}

async function submit(jobName: string, input: string): Promise<Job> {
  const settings = { script: "cat in/* > out/copy.txt; echo copied", input };
  const body = { jobName, type: "shell", settings, priority: -1, tags: { by: "ts" } };
  const first = answer(await api.POST("/submit-job", { body }));
  same(first.created, true, "created");
  const again = answer(await api.POST("/submit-job", { body }));
  same(again.created, false, "created, of the repeat");
  same(again.settings?.["script"], settings.script, "the script in the record");
  return again;
}

async function listed(jobName: string): Promise<void> {
  const query = { limit: 1, algorithm: "shell", statuses: true };
  const page = answer(await api.GET("/jobs", { params: { query } }));
  same(page.jobs[0]?.jobName, jobName, "the newest job");
  same(page.startKey, undefined, "the next page");
}

async function wait(jobName: string): Promise<Job> {
  for (;;) {
    const job = answer(await api.GET("/jobs/{jobName}", { params: { path: { jobName }, query: { wait: "30s" } } }));
    if (job.status === "COMPLETED" || job.status === "FAILED") return job;
  }
}

async function download(jobName: string): Promise<void> {
  const result = answer(await api.POST("/result", { body: { jobName, fileName: "copy.txt" } }));
  const got = await fetch(result.downloadUrl);
  same(await got.text(), text, "the result");
  const log = await api.GET("/jobs/{jobName}/logs", { params: { path: { jobName } }, parseAs: "text" });
  same(log.data, "copied\n", "the log");
}

async function refusals(jobName: string): Promise<void> {
  const missing = await api.GET("/jobs/{jobName}", { params: { path: { jobName: "none" } } });
  const error = need(missing.error, "error");
  same("error" in error ? error.error.code : "", "NOT_FOUND", "the code");
  const checked = answer(await api.POST("/validate-job", { body: { jobName: "a/b", type: "shell", settings: { cpus: 0 } } }));
  same(checked.valid, false, "valid");
  same(checked.detail[0]?.loc[0], "body", "the place of a fault");
  const taken = await api.POST("/submit-job", { body: { jobName, type: "shell", settings: { script: "false" } } });
  same(taken.response.status, 409, "the status of another job of that name");
}

const jobName = "from ts";
await submit(jobName, await upload());
await listed(jobName);
same((await wait(jobName)).status, "COMPLETED", "the status");
await download(jobName);
await refusals(jobName);
const algorithm = answer(await api.GET("/algorithms/{type}", { params: { path: { type: "shell" } } }));
same(typeof algorithm.schema["properties"], "object", "the properties of the schema");
console.log("done");
