// Large results: each is shown while the page stays responsive; too large ones show a message.
import assert from 'node:assert/strict'
import { big, config } from '../bench/big.mjs'
import { Watched } from '../bench/watched.mjs'

export { config }

const most = 500 // maximum milliseconds of CPU per task on a busy machine; the goal is 200

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(key)
  for (const [kind, size, shown] of [['assembly', 100_000, '[data-ready]'], ['matrix', 2000, '.matrix canvas'], ['alignment', 4000, '.alignment canvas'], ['tree', 50_000, '.tree svg path']]) {
    await big(server, key, kind, kind, size)
    await watched.begin()
    await ann.open('jobs/' + kind)
    await page.locator(shown).first().waitFor()
    const { cpu } = await watched.longest()
    assert.ok(cpu < most, `${kind}: a task took ${cpu} ms of CPU`)
    await ann.look('large-' + kind)
  }
  await page.getByText('50,000 leaves').waitFor()

  await big(server, key, 'huge', 'assembly', 350_000)
  await ann.open('jobs/huge')
  await page.getByText('can’t be shown: it has 350,000 atoms').waitFor()
  await page.getByRole('link', { name: 'Download assembly.cif' }).waitFor()
  await ann.look('large-refused')

  // More users than a page shows.
  for (let i = 0; i < 120; i++) await server.api(key, 'POST', 'admin/keys', { email: `user${i}@lab.example`, role: 'member' })
  await ann.open('admin/users')
  await page.getByText('1 to 100 of 121 users').waitFor()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('101 to 121 of 121 users').waitFor()
  await page.getByRole('searchbox', { name: 'Find users' }).fill('USER119')
  await page.getByText('1 of 121 users').waitFor()
  await ann.look('admin-users-many')
  await ann.close()
}
