// Signing in with a key, a wrong key and a link; and signing out.
import assert from 'node:assert/strict'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  ann.expect(/status of 401/)

  await page.goto(server.url + '/')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await ann.look('sign-in')
  await page.getByLabel('API key').fill('molrun_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  await ann.look('sign-in-wrong')

  await page.getByLabel('API key').fill(` ${key} `)
  await page.keyboard.press('Enter')
  await page.getByText('No jobs yet.').waitFor()
  assert.equal(await page.title(), 'What do you want to do? – molrun')
  await ann.look('home-empty')
  const cookies = await ann.context.cookies()
  assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies))
  assert.ok(!(await page.evaluate((k) => JSON.stringify(localStorage) + document.cookie + JSON.stringify(sessionStorage)).then((s) => s.includes(key))))

  await page.reload()
  await page.getByText('No jobs yet.').waitFor()
  await page.locator('summary', { hasText: 'ann@lab.example' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  ann.fine('signed out')
  await ann.close()

  const link = server.molrun('sign-in', '--user', 'ann@lab.example').match(/http\S+/)[0]
  const again = await browser.person(server)
  again.expect(/status of 401/)
  await again.page.goto(link)
  await again.page.getByText('No jobs yet.').waitFor()
  assert.ok(!again.page.url().includes('signin'), again.page.url())
  again.fine('by a link')
  await again.close()

  const second = await browser.person(server)
  second.expect(/status of 401/)
  await second.page.goto(link)
  await second.page.getByText('This link has already been used').waitFor()
  second.fine('a used link')
  await second.close()
}
