// Large results: time until shown, and how long they block the page.
import { big, config } from './big.mjs'
import { ms, tasks, Watched } from './watched.mjs'

export { config }

const cases = [
  { name: 'matrix', size: 4000, what: 'a matrix of 4000 × 4000', shown: '.matrix canvas' },
  { name: 'alignment', size: 25_000, what: 'an alignment of 25,000 sequences, 25 MB', shown: '.alignment canvas' },
  { name: 'tree', size: 100_000, what: 'a tree of 100,000 leaves', shown: '.tree svg path' },
  { name: 'table', size: 100_000, what: 'a table of 100,000 rows', shown: '[data-view=table] tbody tr:nth-child(50)', sort: true },
  { name: 'lines', size: 1_000_000, what: 'a log of 1,000,000 lines', shown: '[role=log] div', page: '?tab=log' },
]

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(key)
  for (const c of cases) {
    await big(server, key, c.name, c.name, c.size)
    await watched.begin()
    const began = Date.now()
    await ann.open(`jobs/${c.name}${c.page ?? ''}`)
    await page.locator(c.shown).first().waitFor({ state: 'attached', timeout: 120_000 })
    tell(`${c.what}: shown`, ms(Date.now() - began))
    tell(`${c.what}: longest task`, tasks(await watched.longest()))
    if (c.sort) {
      await watched.begin()
      const clicked = Date.now()
      await page.getByRole('button', { name: 'affinity' }).click()
      await page.locator('th[aria-sort=ascending]').waitFor()
      await page.locator('[aria-busy=false] th[aria-sort=ascending]').waitFor()
      tell('the same, sorted', `${ms(Date.now() - clicked)}, longest task ${tasks(await watched.longest())}`)
    }
  }
  await ann.open('jobs/table?tab=files')
  await page.getByRole('button', { name: /Preview/ }).first().waitFor()
  await watched.begin()
  await page.getByRole('button', { name: /Preview/ }).first().click()
  await page.locator('dialog pre').waitFor()
  tell('a look into a CSV file of 5 MB: longest task', tasks(await watched.longest()))
  ann.fine('large results')
  await ann.close()
}
