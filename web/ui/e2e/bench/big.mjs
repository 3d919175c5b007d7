// Jobs with large results.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('algorithms', import.meta.url)))}\n[runner]\ncpus = 2\n`

/** Runs a job that writes a large file. */
export async function big(server, key, name, kind, size) {
  const job = await server.run(key, name, 'big', { kind, size })
  assert.equal(job.status, 'COMPLETED', JSON.stringify(job))
}
