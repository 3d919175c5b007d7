// The admin and account pages; a share link in another profile; a failed job; the API reference;
// unknown addresses.
import assert from 'node:assert/strict'

const sequence = 'DSHAKRHHGYKRKFHEKHHSHRGY'
export const config = '[runner]\ncpus = 2\n'

export default async function ({ server, browser }) {
  const root = server.key('lab', 'root@lab.example', 'admin')
  const bob = server.key('lab', 'bob@lab.example')
  const eve = server.key('elsewhere', 'eve@elsewhere.example', 'admin')
  await server.run(root, 'shown', 'cg-idp', { sequences: [sequence], names: ['Hst5'], steps: 20000 })
  const person = await browser.person(server)
  const { page } = person
  await person.signIn(root)

  for (const [path, text] of [
    ['admin', 'This machine'], ['admin/users', 'bob@lab.example'], ['admin/keys', 'bob@lab.example'], ['admin/usage', 'All'], ['admin/storage', 'root@lab.example'],
    ['admin/shares', 'No links.'], ['admin/webhooks', 'No webhooks yet.'], ['admin/audit', 'job.submit'], ['account', 'API keys'],
  ]) {
    await person.open(path)
    await page.getByText(text).first().waitFor()
    assert.ok(!(await page.content()).includes('eve@elsewhere.example'), `${path} shows another organization`)
    await person.look(path.replace('/', '-'))
  }
  await page.setViewportSize({ width: 360, height: 740 })
  for (const path of ['admin', 'admin/keys', 'account', 'files', 'new']) {
    await person.open(path)
    await page.waitForLoadState('networkidle')
    await person.look(path.replace('/', '-'))
  }
  await page.setViewportSize({ width: 1280, height: 800 })

  // A key is shown once, works, and can be deleted.
  await person.open('account')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('notebook')
  await person.look('new-key')
  await page.getByRole('button', { name: 'Create key' }).click()
  const made = await page.getByRole('dialog').locator('code').textContent()
  assert.equal((await server.api(made, 'GET', 'session')).email, 'root@lab.example')
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('row', { name: /notebook/ }).getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete key' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal((await fetch(server.url + '/session', { headers: { 'x-api-key': made } })).status, 401)

  // The queue can be paused.
  await person.open('admin')
  await page.getByLabel('Reason for pausing the queue').waitFor().catch(() => {})
  await page.getByText('free of').waitFor()

  // A result is shared with a stranger.
  await person.open('jobs/shown')
  await page.getByRole('button', { name: 'Share' }).click()
  await page.getByRole('button', { name: 'Create link' }).click()
  const link = await page.getByLabel('Link').inputValue()
  await person.look('share')
  const stranger = await browser.person(server)
  stranger.expect(/status of 401/)
  await stranger.page.goto(link)
  await stranger.page.getByRole('heading', { name: 'shown' }).waitFor()
  await stranger.page.getByText('traj.dcd').first().waitFor()
  await stranger.page.locator('[data-view=size]').scrollIntoViewIfNeeded()
  await stranger.page.locator('[data-view=size] canvas').first().waitFor()
  await stranger.look('shared')
  stranger.expect(/status of 404/)
  await stranger.page.goto(link.slice(0, -3) + 'AAA')
  await stranger.page.getByText('This link is not valid').waitFor()
  await stranger.look('shared-nothing')
  await stranger.close()

  // A failed job shows why, and can be edited and run again.
  await server.api(root, 'POST', 'submit-job', { jobName: 'stopped', type: 'cg-idp', settings: { sequences: [sequence], steps: 90_000_000 } })
  await person.open('jobs/stopped')
  await page.getByText('Running').first().waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByRole('region', { name: 'Why it failed' }).waitFor()
  await person.look('job-cancelled')
  await page.getByRole('link', { name: 'Edit and run again' }).click()
  await page.getByLabel('Steps', { exact: true }).fill('20000')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByText('Completed').first().waitFor()

  await person.open('api')
  await page.getByText('/submit-job').first().waitFor()
  await person.look('api')
  await page.locator('#operations-jobs-submitJob .opblock-summary-control').click()
  await page.getByText('Submission is idempotent').waitFor()
  await person.look('api-open')
  await person.open('no-such-page')
  await page.getByText('Page not found').waitFor()
  await person.look('no-such-page')
  person.fine('the administrator')
  await person.close()

  const member = await browser.person(server)
  await member.signIn(bob)
  await member.open('admin/users')
  await member.page.getByText('This page is for admins').waitFor()
  await member.close()
  assert.ok(eve)
}
