// A job watched while it writes: unwritten files are shown as such, not as errors. When the job has
// finished, every view shows the whole file, and so do the list of files, a previewed file, and the
// metrics; the log follows a job that is retried. All without a reload. Without a sandbox, since a
// file decides when the program continues.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\nsandbox = "off"\n`

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  const submit = async (jobName) => {
    const gate = join(server.dir, jobName)
    await server.api(key, 'POST', 'submit-job', { jobName, type: 'toy-slow', settings: { gate } })
    await ann.open('jobs/' + jobName)
    await page.getByText('Running').first().waitFor()
    return () => writeFileSync(gate, '')
  }
  const panel = async (view) => {
    const found = page.locator(`[data-view=${view}]`)
    await found.scrollIntoViewIfNeeded()
    return found
  }
  const isWide = (view, width) => page.waitForFunction(([view, width]) => document.querySelector(`[data-view=${view}] img`)?.naturalWidth === width, [view, width])

  let goOn = await submit('watched')
  await page.getByRole('link', { name: 'Result', exact: true }).click()
  for (const view of ['structure', 'empty', 'series', 'table', 'matrix', 'tree', 'half']) await (await panel(view)).getByText('Not written yet.').waitFor()
  await panel('image')
  await isWide('image', 10)
  await (await panel('alignment')).getByLabel(/: 1 sequences/).waitFor()
  await (await panel('text')).getByText('the first line').waitFor()
  assert.equal(await page.getByRole('alert').count(), 0, 'a file that is not written yet is no error')
  await page.evaluate(() => scrollTo(0, 0))
  await ann.look('writing')
  goOn()
  await page.getByText('Completed').first().waitFor()
  await page.getByText('7.5', { exact: true }).waitFor()
  await page.locator('[data-view=structure] [data-ready]').waitFor()
  for (const view of ['empty', 'alignment']) await (await panel(view)).getByLabel(/: 2 sequences/).waitFor()
  for (const [view, seen] of [['series', 'canvas'], ['table', 'td'], ['matrix', 'canvas'], ['tree', 'svg']]) await (await panel(view)).locator(seen).first().waitFor()
  for (const view of ['image', 'half']) {
    await panel(view)
    await isWide(view, 50)
  }
  await (await panel('text')).getByText('the last line').waitFor()
  assert.equal(await page.getByText('Not written yet.').count() + (await page.getByRole('alert').count()), 0)
  await ann.look('written')

  // The files, and one opened while the job was running.
  goOn = await submit('opened')
  await ann.open('jobs/opened?tab=files')
  await page.getByRole('button', { name: 'Preview half.svg' }).click()
  await page.getByRole('dialog').getByText('Not written yet.').waitFor()
  goOn()
  await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth === 50)
  await page.getByRole('button', { name: 'Copy SHA-256' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('rowheader', { name: 'metrics.json' }).waitFor()
  await ann.look('written-files')

  // The log is from the latest attempt.
  const needs = join(server.dir, 'needs')
  await server.api(key, 'POST', 'submit-job', { jobName: 'again', type: 'toy-figure', settings: { needs } })
  await server.end(key, 'again')
  await ann.open('jobs/again?tab=log')
  await page.getByRole('log').getByText('nothing at').first().waitFor()
  writeFileSync(needs, '')
  await server.api(key, 'POST', 'jobs/again/retry')
  await page.getByText('Completed').first().waitFor()
  await page.getByRole('log').getByText('The program printed nothing.').waitFor()
  ann.fine('a job that writes')
  await ann.close()
}
