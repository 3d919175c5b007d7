// A batch with failed rows: reasons, order, images of the best rows, a new job that uses them, and
// dependencies.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\n`

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)

  const good = [20, 40, 60, 30, 50].map((residues) => ({ residues }))
  const bad = ['atoms', 'memory', 'atoms', 'atoms'].map((fail, i) => ({ fail, residues: 10 + i }))
  await server.api(key, 'POST', 'submit-batch', { batchName: 'folds', type: 'toy-fold', settings: [...good.slice(0, 3), ...bad, ...good.slice(3)] })
  await ann.open('jobs/folds')
  await page.getByText('3 × The ligand has no atoms.', { exact: false }).waitFor()
  await page.getByRole('link', { name: 'folds-9' }).waitFor()
  await page.getByTitle('5 completed').waitFor()

  // Failed rows come first, each with its message; then the best ones.
  const table = page.getByRole('region', { name: 'Rows of folds' })
  const names = () => table.getByRole('rowheader').allTextContents()
  await page.waitForFunction(() => [...document.querySelectorAll('tbody th')].length === 9)
  assert.deepEqual(await names(), ['folds-4', 'folds-5', 'folds-6', 'folds-7', 'folds-1', 'folds-8', 'folds-2', 'folds-9', 'folds-3'])
  await table.getByRole('row', { name: /folds-5/ }).getByText('The GPU has too little memory').waitFor()
  await table.getByRole('cell', { name: '92.1', exact: true }).waitFor() // as many digits as the algorithm says
  await page.getByText('3 ×').click()
  await page.getByLabel('Why rows failed').getByRole('link', { name: 'folds-6' }).waitFor()
  await ann.look('batch')
  await page.getByLabel('Order').selectOption({ label: 'Best first' })
  await page.waitForFunction(() => document.querySelector('tbody th')?.textContent === 'folds-1')
  await page.reload()
  await page.waitForFunction(() => document.querySelector('tbody th')?.textContent === 'folds-1')
  await page.getByRole('button', { name: 'Plot two metrics' }).click()
  await page.getByLabel('X axis').selectOption({ label: 'Radius (Å)' })

  // Images of the best rows, with one WebGL context; one of them in 3D.
  await page.getByRole('button', { name: 'Show structures' }).click()
  const pictures = page.getByLabel('The best rows').locator('img')
  await page.waitForFunction(() => document.querySelectorAll('section[aria-label="The best rows"] img').length === 5)
  assert.ok(await pictures.first().evaluate((img) => img.naturalWidth >= 320))
  await page.getByRole('button', { name: /folds-8/ }).click()
  await page.locator('[data-ready]').waitFor()
  await page.getByRole('button', { name: /folds-8/ }).scrollIntoViewIfNeeded()
  await ann.look('batch-structures')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('batch-structures')
  await page.setViewportSize({ width: 1280, height: 800 })

  // The best two as input for a new batch.
  await page.getByLabel('How many rows').fill('2')
  await page.getByRole('link', { name: 'as input for…' }).click()
  await page.getByRole('link', { name: 'Toy folding' }).click()
  await page.getByText('job:folds-1/@model').waitFor()
  await page.getByText('job:folds-8/@model').waitFor()
  await page.locator('#job-name').fill('again')
  await page.getByRole('button', { name: 'Submit 2 jobs' }).click()
  await page.getByRole('heading', { name: 'again' }).waitFor()
  await ann.open('jobs/folds-1')

  await page.getByText('1 path in the output folder is not in the result').click()
  await page.getByText('gone.pdb: a link to a missing file').waitFor()

  // pLDDT from 0 to 1 is shown and colored as 0 to 100.
  await page.locator('[data-view=model] [data-ready]').waitFor()
  await page.getByRole('list', { name: 'pLDDT colors' }).getByText('> 90 very high').waitFor()

  // A residue under the pointer is marked in both structure and matrix.
  await page.locator('[data-view=model] [data-ready]').waitFor()
  await page.locator('[data-view=pae]').scrollIntoViewIfNeeded()
  const cell = page.locator('[data-view=pae] .value')
  await page.locator('[data-view=pae] .frame').hover({ position: { x: 3, y: 3 } })
  await cell.getByText('A ALA 1, A ALA 1: 0 Å').waitFor()
  await page.locator('[data-view=pae]').screenshot({ path: (browser.shots ?? server.dir) + '/matrix.png' })
  const before = await page.locator('[data-view=model] .host').screenshot()
  await page.locator('[data-view=pae] .frame').hover({ position: { x: 3, y: 200 } })
  await cell.getByText(/[AB] ALA \d+, A ALA 1: /).waitFor()
  await page.waitForFunction(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true)))))
  assert.notDeepEqual(await page.locator('[data-view=model] .host').screenshot(), before)
  await page.locator('[data-view=model] .host').scrollIntoViewIfNeeded()
  await page.mouse.move(2, 2)
  await page.waitForFunction(() => document.querySelector('[data-view=pae] .value').textContent.trim() === '')
  const box = await page.locator('[data-view=model] .host').boundingBox()
  for (let i = 0; (await cell.textContent()).trim() === ''; i++) {
    assert.ok(i < 400, 'no residue under the pointer')
    await page.mouse.move(box.x + box.width * (0.3 + 0.02 * (i % 20)), box.y + box.height * (0.3 + 0.02 * Math.floor(i / 20)))
    await page.waitForTimeout(30)
  }
  assert.match(await cell.textContent(), /^([AB] ALA \d+), \1: 0 Å/)
  await page.getByText(/ALA \d+, atom \w+, pLDDT \d\d\.0/).waitFor()
  await page.getByText('Used by').waitFor()
  await page.getByRole('link', { name: 'again', exact: true }).waitFor()
  await ann.look('job-used')

  // Downloaded files are named after job and view.
  const saved = page.waitForEvent('download')
  await page.locator('[data-view=loss]').getByRole('button', { name: 'CSV' }).click()
  assert.equal((await saved).suggestedFilename(), 'folds-1-Loss.csv')
  const picture = page.waitForEvent('download')
  await page.locator('[data-view=pae]').getByRole('button', { name: 'PNG' }).click()
  assert.equal((await picture).suggestedFilename(), 'folds-1-Predicted-aligned-error.png')

  // Comparison: metrics with titles and digits, differing settings first.
  await ann.open('compare?job=folds-1&job=folds-3&job=folds-8')
  const compared = page.getByRole('region', { name: 'Comparison' })
  await compared.getByRole('row', { name: /Mean pLDDT 92.1 ★ best 86.4 90.7/ }).waitFor()
  await compared.getByRole('row', { name: /^Residues 20 60 30/ }).waitFor()
  await page.getByRole('heading', { name: 'Curves' }).waitFor()
  await page.locator('.chart canvas').first().waitFor()
  await page.locator('[data-ready]').waitFor()
  await ann.look('compare')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('compare')
  await page.setViewportSize({ width: 1280, height: 800 })

  // A job for each row of a table made by another job.
  await ann.open('jobs/folds-1?tab=files')
  await page.getByRole('row', { name: /designs.csv/ }).getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('link', { name: 'Run a job for each row…' }).click()
  await page.getByRole('link', { name: 'Toy folding' }).click()
  await page.getByText('All columns, each row of a table: job:folds-1/designs.csv').waitFor()
  await page.getByText('3 jobs', { exact: true }).waitFor()
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('new-job-each')
  await page.getByRole('button', { name: 'Remove All columns' }).click()
  await page.getByLabel('A job for').selectOption({ label: 'each file of a folder' })
  await page.getByLabel('Folder and name pattern').fill('none/*.pdb')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText(/you have no completed upload named none/).first().waitFor()
  await ann.look('new-job-each-fault')
  await page.getByRole('button', { name: 'Remove Template' }).click()
  await page.getByLabel('A job for').selectOption({ label: 'each row of a table' })
  await page.getByRole('button', { name: 'Choose an upload or a result' }).click()
  await page.getByLabel('results of my jobs').check()
  await page.getByRole('dialog').getByRole('button', { name: /^folds 5 completed rows/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: /^folds-1 / }).click()
  await page.getByRole('dialog').getByRole('button', { name: /designs.csv/ }).click()
  await page.locator('#job-name').fill('designed')
  await page.getByRole('button', { name: 'Submit 3 jobs' }).click()
  await page.getByRole('heading', { name: 'designed' }).waitFor()
  await page.getByTitle('3 completed').waitFor()
  ann.fine('the batch')
  await ann.close()
}
