// What 200 page changes leave behind.
import { big, config } from './big.mjs'
import { mb, Watched } from './watched.mjs'

export { config }

const rounds = 40 // of five pages

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(key)
  await big(server, key, 'chain', 'chain', 140)
  await big(server, key, 'matrix', 'matrix', 300)
  await ann.open('')
  const link = (name, exact = true) => page.getByRole('link', { name, exact }).first()
  const round = async () => {
    await link('chain').click()
    await page.locator('[data-ready]').waitFor({ timeout: 120_000 })
    await link('Log').click()
    await page.getByRole('log').waitFor()
    await link('Files').click()
    await page.getByRole('heading', { name: 'Files' }).waitFor()
    await link('Jobs').click()
    await link('matrix').click()
    await page.locator('.matrix canvas').waitFor()
    await link('Jobs').click()
    await page.getByRole('heading', { name: 'Jobs' }).waitFor()
    await link('chain').waitFor()
  }
  for (let i = 0; i < 3; i++) await round()
  const before = await watched.left()
  for (let i = 0; i < rounds; i++) await round()
  const after = await watched.left()
  const both = (name, as = String) => `${as(before[name])}, ${as(after[name])}`
  tell('200 changes of pages with 40 viewers: the heap before, after', both('heap', mb))
  tell('the same: nodes, listeners', `${both('nodes')}; ${both('listeners')}`)
  tell('the same: WebGL contexts, workers, object addresses', `${both('contexts')}; ${both('workers')}; ${both('urls')}`)
  ann.fine('200 changes of pages')
  await ann.close()
}
