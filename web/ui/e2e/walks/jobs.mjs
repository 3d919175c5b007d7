// The list of jobs: live updates, filters, expanded batches, actions on several jobs, a user of
// another organization.
import assert from 'node:assert/strict'

const sequence = 'DSHAKRHHGYKRKFHEKHHSHRGY'
export const config = '[runner]\ncpus = 1\n'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const other = server.key('elsewhere', 'eve@elsewhere.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)

  // A job submitted elsewhere appears, runs and finishes without a reload.
  await server.api(key, 'POST', 'submit-job', { jobName: 'first', type: 'cg-idp', settings: { sequences: [sequence], steps: 20000 }, tags: { target: 'hst5' }, note: 'a note' })
  const row = page.getByRole('row', { name: /first/ })
  await row.waitFor()
  await row.getByText('Completed').waitFor()

  await server.api(key, 'POST', 'submit-batch', { batchName: 'screen', type: 'cg-idp', settings: [{ sequences: [sequence], steps: 1000 }, { sequences: [sequence], steps: 2000 }, { sequences: [sequence], steps: 5_000_000 }, { sequences: [sequence], steps: 5_000_000 }] })
  await server.api(key, 'POST', 'submit-job', { jobName: 'bad "><img src=x onerror=alert(1)>', type: 'cg-idp', settings: { sequences: [sequence], steps: 5_000_000 }, note: '<script>alert(1)</script>' })
  await page.getByText('batch of 4').waitFor()
  await page.getByRole('button', { name: 'Rows of screen' }).click()
  await page.getByRole('link', { name: 'screen-4' }).waitFor()
  await page.getByText(/in the queue/).first().waitFor()
  await ann.look('jobs')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('jobs')
  await page.setViewportSize({ width: 1280, height: 800 })

  // Filters are in the URL.
  await page.getByLabel('Search').fill('hst5')
  await page.waitForURL(/search=hst5/)
  await page.getByText('1 match').waitFor()
  await page.getByLabel('Search').fill('nothing has this')
  await page.getByText('No jobs match.').waitFor()
  await ann.look('jobs-no-match')
  await page.getByRole('button', { name: 'Clear filters' }).first().click()
  await page.getByLabel('Status').selectOption('COMPLETED')
  await page.getByText('1 match').waitFor()
  await page.reload()
  await page.getByText('1 match').waitFor()
  await page.goBack()

  // With the keyboard only.
  await ann.open('jobs')
  await page.getByRole('row', { name: /first/ }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await ann.look('keys')
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search')
  await page.getByRole('heading', { name: 'Jobs' }).focus()
  await page.keyboard.press('ArrowDown')
  assert.match(await page.evaluate(() => document.activeElement.textContent), /bad/)

  // Actions on several jobs.
  await page.getByLabel('Select screen', { exact: true }).check()
  await page.getByLabel(/Select bad/).check()
  await ann.look('jobs-selected')
  await page.getByRole('button', { name: /^Cancel/ }).click()
  await ann.look('jobs-ask')
  await page.getByRole('button', { name: 'Cancel jobs' }).click()
  await page.getByText('2 jobs cancelled.').waitFor()
  await page.getByRole('row', { name: /bad/ }).getByText('Cancelled').waitFor()

  // The server goes down and comes back; the rows stay.
  ann.expect(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_NETWORK_CHANGED/)
  await server.stop('SIGKILL')
  await page.getByText('not live').waitFor()
  await page.getByRole('row', { name: /first/ }).waitFor()
  await server.start(config)
  await page.getByText('● live', { exact: true }).waitFor()

  const eve = await browser.person(server)
  await eve.signIn(other)
  await eve.page.getByText('No jobs yet.').waitFor()
  eve.expect(/status of 404/)
  await eve.open('jobs/first')
  await eve.page.getByText(/not found/i).first().waitFor()
  assert.ok(!(await eve.page.content()).includes(sequence))
  await eve.close()
  ann.fine('the list')
  await ann.close()
}
