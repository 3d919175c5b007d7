// Uploads: 300 MB with a server crash, a pause and a reload; known content; the jobs that used a
// file; the example of a program with input files; a box on a structure.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { openSync, readFileSync, writeSync, closeSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const config = '[runner]\ncpus = 2\n'

const size = 300 << 20

/** Writes a file without repeating parts, and returns its digest. */
function large(path) {
  const hash = createHash('sha256')
  const f = openSync(path, 'w')
  const part = Buffer.alloc(1 << 20)
  for (let i = 0; i < size >> 20; i++) {
    part.fill(i & 255).writeUInt32LE(i)
    hash.update(part)
    writeSync(f, part)
  }
  closeSync(f)
  return hash.digest('hex')
}

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const path = join(server.dir, 'large.xtc')
  const digest = large(path)
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  await page.getByRole('link', { name: 'Files', exact: true }).first().click()
  await page.getByText('No files yet').waitFor()
  await ann.look('files-empty')

  const network = await ann.context.newCDPSession(page)
  await network.send('Network.enable')
  await network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 40 << 20 })
  const choose = () => page.locator('input[type=file]').setInputFiles(path)
  const row = page.locator('[data-upload="large.xtc"]')
  const past = (fraction) => page.waitForFunction((f) => { const p = document.querySelector('[data-upload="large.xtc"] progress'); return p && p.value / p.max > f }, fraction)

  await choose()
  await past(0.2)
  await ann.look('files-sending')

  // The server crashes and comes back: the upload resumes automatically.
  ann.expect(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_INCOMPLETE|net::ERR/)
  await server.stop('SIGKILL')
  await row.getByText('Connection lost; retrying.').waitFor()
  await server.start(config)
  await past(0.45)

  // After a pause and a reload, the upload resumes when the same file is chosen again.
  await row.getByRole('button', { name: 'Pause' }).click()
  await row.getByText('paused').waitFor()
  await ann.look('files-paused')
  await page.reload()
  await page.getByText('Unfinished: inputs/large.xtc').waitFor()
  await network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 })
  let patched = 0
  page.on('request', (r) => { if (r.method() === 'PATCH') patched++ })
  await choose()
  await row.getByText('uploaded', { exact: true }).waitFor()
  assert.ok(patched > 0 && patched <= 8, `${patched} parts were sent after the reload`)
  const { files } = await server.api(key, 'GET', 'files')
  assert.deepEqual(files.map((f) => [f.folder, f.filename, f.size, f.sha256, f.status]), [['inputs', 'large.xtc', size, digest, 'completed']])

  // Content that the server already has is not sent.
  writeFileSync(join(server.dir, 'small.fasta'), '>a\nMKTAYIAKQR\n')
  const small = () => page.locator('input[type=file]').setInputFiles(join(server.dir, 'small.fasta'))
  await small()
  await page.locator('[data-upload="small.fasta"]').getByText('uploaded', { exact: true }).waitFor()
  patched = 0
  await small()
  await page.locator('[data-upload="small.fasta"]').nth(1).getByText('uploaded', { exact: true }).waitFor()
  assert.equal(patched, 0)
  await page.getByRole('row', { name: /small.fasta/ }).getByRole('button', { name: 'Used by' }).click()
  await page.getByText('No job has used this file.').waitFor()
  await ann.look('files-used-by')
  await page.keyboard.press('Escape')
  const download = page.waitForEvent('download')
  await page.getByRole('row', { name: /small.fasta/ }).getByRole('button', { name: 'Download' }).click()
  assert.equal(readFileSync(await (await download).path(), 'utf8'), '>a\nMKTAYIAKQR\n')
  await page.getByRole('row', { name: /large.xtc/ }).getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete file' }).click()
  await page.getByRole('row', { name: /large.xtc/ }).waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('files')
  await page.setViewportSize({ width: 1280, height: 800 })

  // The example of a program with input files: one click uploads them.
  await ann.open('new/sequence-properties')
  await page.getByRole('button', { name: 'Load the example' }).click()
  await page.getByText('asyn.fasta', { exact: true }).waitFor()
  await page.getByText(/can run here|Starts in about/).waitFor()
  await page.locator('#job-name').fill('asyn')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'asyn' }).waitFor()
  await page.getByText('Completed').first().waitFor()

  // The docking box is placed on the structure, and its numbers appear in the form.
  await ann.open('new/vina')
  await page.getByRole('button', { name: 'Load the example' }).click()
  await page.getByText('Box on the structure').click()
  await page.locator('.viewer[data-ready]').waitFor()
  await page.getByRole('button', { name: 'Place box' }).click()
  await page.getByRole('button', { name: 'Fit box' }).click()
  const center = page.getByRole('textbox', { name: /Box center/ })
  await page.waitForFunction((e) => e.value !== '0 0 0', await center.elementHandle())
  assert.match(await center.inputValue(), /^(-?[\d.]+ ){2}-?[\d.]+$/)
  await center.fill('1 2 3')
  assert.equal(await page.getByLabel('Center y in ångströms').inputValue(), '2')
  await page.getByLabel('Size x in ångströms').fill('16')
  assert.equal(await page.getByLabel('Size z in ångströms').inputValue(), '16')
  await page.getByText('Box on the structure').scrollIntoViewIfNeeded()
  await ann.look('new-job-box')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('new-job-box')
  ann.fine('files')
  await ann.close()
}
