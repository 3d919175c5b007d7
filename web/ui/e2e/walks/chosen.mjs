// A job uses the chosen file, even if another one of the same name was uploaded since: sent again,
// restored, from the list of uploads, in a job that is run again, and in the examples of programs.
// A table: multi-line cells, empty cells, and errors.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const config = '[runner]\ncpus = 2\n'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  const tab = await ann.context.newPage()
  const own = join(server.dir, 'a.fasta')
  const fasta = (n) => '>a\n' + 'GS'.repeat(n / 2) + '\n'
  writeFileSync(own, fasta(22))

  /** Uploads another a.fasta in another tab. */
  async function another(residues) {
    await tab.goto(`${server.url}/ui/files`)
    await tab.locator('input[type=file]').setInputFiles({ name: 'a.fasta', mimeType: 'text/plain', buffer: Buffer.from(fasta(residues)) })
    await tab.locator('[data-upload="a.fasta"]').getByText('uploaded', { exact: true }).waitFor()
  }
  const field = page.locator('[data-field=fasta]')
  const choose = async (file) => {
    await field.locator('input[type=file]').setInputFiles(file)
    await field.getByText('a.fasta', { exact: true }).waitFor()
  }
  /** Submits the form and returns the number of residues in the result. */
  async function submit(name) {
    await page.locator('#job-name').fill(name)
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    await page.getByRole('heading', { name, exact: true }).waitFor()
    return (await server.end(key, name)).metrics.results.length
  }

  // A file is chosen, then another is uploaded, and the page is reloaded.
  await ann.open('new/sequence-properties')
  await choose(own)
  await another(30)
  await page.reload()
  await field.getByText('a.fasta', { exact: true }).waitFor()
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('chosen')
  assert.equal(await submit('restored'), 22)
  await page.getByRole('link', { name: 'Input', exact: true }).click()
  await page.getByRole('row', { name: /^FASTA file a\.fasta$/ }).waitFor()
  await ann.look('chosen-input')

  // The server already has the bytes.
  await ann.open('new/sequence-properties')
  await choose(own)
  assert.equal(await submit('known'), 22)

  // Two files of the same name on the server.
  await ann.open('new/sequence-properties')
  await field.getByRole('button', { name: /^Choose on the server/ }).click()
  const there = page.getByRole('dialog').getByRole('button', { name: /inputs\/a\.fasta/ })
  await there.nth(1).waitFor()
  await ann.look('chosen-server')
  await there.nth(1).click() // the newest is first
  assert.equal(await submit('older'), 22)

  // A job that referenced its file by folder and name, before another upload.
  await another(40)
  await server.run(key, 'plain', 'sequence-properties', { fasta: 'inputs/a.fasta' })
  await another(50)
  await ann.open('jobs/plain')
  await page.getByRole('link', { name: 'Edit and run again' }).click()
  await field.getByText('a.fasta', { exact: true }).waitFor()
  assert.equal(await submit('again'), 40)

  // Example files of the same name from several programs.
  for (const type of ['tm-align', 'dssp', 'structure-summary']) {
    await ann.open('new/' + type)
    await page.getByRole('button', { name: 'Load the example' }).click()
    await page.getByText('lysozyme.pdb', { exact: true }).first().waitFor()
  }
  // The summary of the file is shown next to it, before and after submission.
  const holds = /^1 chain, 129 residues/
  await page.getByText(holds).waitFor()
  await ann.look('chosen-seen')
  await page.locator('#job-name').fill('lysozyme')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'lysozyme', exact: true }).waitFor()
  await page.getByRole('link', { name: 'Input', exact: true }).click()
  await page.getByRole('cell', { name: 'lysozyme.pdb' }).getByText(holds).waitFor()
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('chosen-seen-input')
  await page.setViewportSize({ width: 1280, height: 800 })
  const [input] = (await server.end(key, 'lysozyme')).inputs
  const { files } = await server.api(key, 'GET', 'files?folder=examples/structure-summary')
  assert.deepEqual([input.filename, input.sha256], ['lysozyme.pdb', files.find((f) => f.filename === 'lysozyme.pdb').sha256])
  assert.ok((await server.api(key, 'GET', 'files?folder=examples/tm-align')).files.some((f) => f.filename === 'lysozyme.pdb'))

  // A table: a setting that is also a column; a wrong cell; the fixed table has two rows.
  const table = page.locator('input[type=file][accept=".csv,.tsv,.tab,.xlsx,.txt"]').first()
  const send = (text) => table.setInputFiles({ name: 'rows.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
  await ann.open('new/sequence-properties')
  await page.getByLabel('pH', { exact: true }).fill('5')
  await send('jobName,sequence,pH\none,"ACDEF\nGHIKL",6\ntwo,ACDEFB,15\n')
  await page.getByRole('button', { name: 'Use pH from the table' }).click()
  await page.getByText('line 4, column "pH": must be at most 14, got 15').first().waitFor()
  await page.getByText(/^line 4, column "sequence"/).first().waitFor()
  await ann.look('table-fault')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('table-fault')
  await page.setViewportSize({ width: 1280, height: 800 })
  await send('jobName;sequence;pH\r\none;ACDEF;1,234\r\n')
  await page.getByText('line 2, column "pH": "1,234" is ambiguous: it can mean 1.234 or 1234').first().waitFor()
  await send('jobName;sequence;pH;\r\none;"ACDEF\r\nGHIKL";6,5;\r\ntwo;ACDEF;;\r\n;;;\r\n')
  await page.getByText('2 jobs', { exact: true }).waitFor()
  await page.locator('#job-name').fill('rows')
  await ann.look('table')
  await page.getByRole('button', { name: 'Submit 2 jobs' }).click()
  await page.getByRole('heading', { name: 'rows', exact: true }).waitFor()
  await page.getByTitle('2 completed').waitFor()
  assert.equal((await server.end(key, 'one')).metrics.results.length, 10)
  assert.deepEqual((await server.end(key, 'two')).settings, { sequence: 'ACDEF' })
  await page.getByLabel('File of each row').waitFor() // some have long titles
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('table-rows')
  ann.fine('what was chosen')
  await ann.close()
}
