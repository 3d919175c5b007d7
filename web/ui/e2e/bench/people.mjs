// The admin pages with 10,000 users and keys.
import { ms, tasks, Watched } from './watched.mjs'

export const config = ''

const people = 10_000
const atOnce = 50

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  for (let i = 0; i < people; i += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, k) => server.api(key, 'POST', 'admin/keys', { email: `user${i + k}@lab.example`, role: 'member', name: `key ${i + k}` })))
  }
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  await ann.signIn(key)
  for (const part of ['users', 'keys', 'storage']) {
    await watched.begin()
    const began = Date.now()
    await ann.open('admin/' + part)
    await ann.page.locator('tbody tr').first().waitFor()
    tell(`${part} of 10,000 people: shown`, ms(Date.now() - began))
    tell('the same: longest task', tasks(await watched.longest()))
  }
  await ann.open('admin/users')
  await ann.page.getByRole('searchbox', { name: 'Find users' }).waitFor()
  await watched.begin()
  await ann.page.getByRole('searchbox', { name: 'Find users' }).fill('user9999')
  await ann.page.locator('tbody tr', { hasText: 'user9999@' }).waitFor()
  tell('one of 10,000 users found: longest task', tasks(await watched.longest()))
  ann.fine('10,000 people')
  await ann.close()
}
