// A predictor that submits its own search: few clicks, and its page links the search.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\n`

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  await ann.open('new')
  await page.evaluate(() => {
    window.clicks = 0
    addEventListener('click', (e) => { if (e.isTrusted) window.clicks++ }, true)
  })
  await page.getByRole('searchbox', { name: 'Search programs' }).fill('toy predictor')
  await page.getByRole('link', { name: 'Toy predictor' }).first().click()
  const search = page.getByLabel('Search for related sequences')
  await page.locator('[data-field=proteins] input[type=file]').setInputFiles({ name: 'a.fasta', mimeType: 'text/plain', buffer: Buffer.from('>a\nMKVLAAGIVG\n') })
  await page.locator('[data-field=proteins]').getByText('a.fasta', { exact: true }).waitFor()
  await search.selectOption('search') // one click for a user
  await page.getByText(/can run here|Starts in about|waits for/i).first().waitFor()
  await ann.look('search-form')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByText('Uses the result of').waitFor()
  assert.ok((await page.evaluate(() => window.clicks)) <= 2, 'to choose the program and to submit takes one click each')
  const name = await page.getByRole('heading', { level: 1 }).textContent()
  await server.end(key, name)
  await page.getByRole('link', { name: 'Input', exact: true }).click()
  await page.getByText('rows.a3m', { exact: true }).waitFor()
  await ann.look('search-input')

  // Run again, it has the same settings; the code refers to no undefined file.
  await page.getByRole('navigation', { name: 'Job sections' }).getByRole('link', { name: 'API' }).click()
  await page.getByText('Submit this job from code').waitFor()
  assert.ok(!(await page.locator('body').textContent()).includes('undefined'))
  await page.getByRole('link', { name: 'Edit and run again' }).click()
  await search.waitFor()
  assert.equal(await search.inputValue(), 'search')

  await page.getByRole('link', { name: 'Jobs', exact: true }).first().click()
  await page.getByRole('link', { name: /^toy-search-[0-9a-f]{32}$/ }).waitFor()
}
