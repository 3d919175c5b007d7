// A batch of 50: pasted values, counted before submission; failed rows that are retried; live
// ranking; a plot of two metrics; the archive; and the best rows as input for another batch.
// Without a sandbox, since a file decides which rows fail.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\nsandbox = "off"\n`

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  const made = join(server.dir, 'made')

  await ann.open('new/toy-figure')
  await page.getByRole('button', { name: 'Use several values of Value' }).click()
  await page.getByRole('textbox', { name: 'Value' }).fill(Array.from({ length: 50 }, (_, i) => 10 + i).join('\n'))
  await page.getByRole('button', { name: 'Use several values of Path that must exist' }).click()
  const needs = page.getByRole('textbox', { name: 'Path that must exist' })
  await needs.fill('/\n/tmp')
  await page.getByText(/50 .*2|2 .*50/).first().waitFor() // they can't be paired
  await needs.fill([...Array(45).fill('/'), ...Array(5).fill(made)].join('\n'))
  await page.locator('#job-name').fill('fifty')
  await page.getByText('50 jobs', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Submit 50 jobs' }).waitFor()
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('many-form')
  await page.getByRole('button', { name: 'Submit 50 jobs' }).click()

  // The table fills while rows run; at the end, the best are on top.
  await page.getByRole('heading', { name: 'fifty' }).waitFor()
  const table = page.getByRole('region', { name: 'Rows of fifty' })
  await table.getByRole('rowheader').first().waitFor()
  await page.getByTitle('45 completed').waitFor()
  await page.getByText('5 × There is nothing at', { exact: false }).waitFor()
  await ann.look('many-failed')
  writeFileSync(made, '')
  await page.getByRole('button', { name: 'Retry 5 failed' }).click()
  await page.getByTitle('50 completed').waitFor()
  await page.waitForFunction(() => document.querySelectorAll('tbody th').length === 50 && document.querySelector('tbody th').textContent === 'fifty-21')
  const names = await table.getByRole('rowheader').allTextContents()
  assert.deepEqual(names.slice(0, 3), ['fifty-21', 'fifty-20', 'fifty-22']) // (value - 30)², lowest first
  await table.getByRole('cell', { name: /^[-−]7$/ }).or(table.getByRole('cell', { name: /^[-−]7\.00$/ })).first().waitFor()
  await table.getByRole('button', { name: /Spread/ }).click()
  await page.waitForFunction(() => /Spread/.test(document.querySelector('th[aria-sort=ascending], th[aria-sort=descending]')?.textContent ?? ''))
  await page.getByLabel('Order').selectOption({ label: 'Ranked' })

  await page.getByRole('button', { name: 'Plot two metrics' }).click()
  await page.getByLabel('X axis').selectOption({ label: 'Spread' })
  await ann.look('many')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('many')
  await page.setViewportSize({ width: 1280, height: 800 })

  const archive = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download', exact: true }).click()
  const file = await archive
  assert.match(file.suggestedFilename(), /^fifty.*\.(zip|tar\.gz|tgz)$/)
  assert.ok(readFileSync(await file.path()).includes('fifty-50'))

  await page.getByLabel('How many rows').fill('3')
  await page.getByRole('link', { name: 'as input for…' }).click()
  await page.getByRole('link', { name: 'Toy figure' }).click()
  for (const row of [21, 20, 22]) await page.getByText(`job:fifty-${row}/@figures`).waitFor()
  await page.locator('#job-name').fill('then')
  await page.getByRole('button', { name: 'Submit 3 jobs' }).click()
  await page.getByRole('heading', { name: 'then' }).waitFor()
  await page.getByTitle('3 completed').waitFor()
  ann.fine('the batch of 50')
  await ann.close()
}
