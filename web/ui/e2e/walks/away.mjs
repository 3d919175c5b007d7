// A failing job is fixed and runs. The server goes down and comes back while each page is open; a
// job is deleted while it is shown; a session ends while in use.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 1\n`

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  await mended(ann)
  await cancelled(server, key, ann)
  await away(server, key, ann)
  await deleted(server, key, ann)
  ann.fine('away')
  await ann.close()
  await ended(server, browser)
}

/** A job fails, shows why, and runs after a change. */
async function mended(ann) {
  const { page } = ann
  await ann.open('new/toy-fold')
  await page.getByRole('textbox', { name: 'Residues' }).fill('33')
  await page.getByLabel('How to fail').selectOption('memory')
  await page.locator('#job-name').fill('folded')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  const why = page.getByRole('region', { name: 'Why it failed' })
  await why.getByText('The GPU has too little memory; give fewer residues.').waitFor()
  await why.getByText('error: too little memory').waitFor()
  await ann.look('job-failed')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('job-failed')
  await page.setViewportSize({ width: 1280, height: 800 })
  await why.getByRole('link', { name: 'Fix and run again' }).click()
  await page.getByText('Settings copied from folded').waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Residues' }).inputValue(), '33')
  assert.equal(await page.getByLabel('How to fail').inputValue(), 'memory')
  await page.getByLabel('How to fail').selectOption('no')
  await page.locator('#job-name').fill('folded-2')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'folded-2' }).waitFor()
  await page.getByText('Completed').first().waitFor()
  await page.locator('[data-view=model] [data-ready]').waitFor()
}

/** A running job, and a waiting one that is canceled. */
async function cancelled(server, key, ann) {
  const { page } = ann
  for (const jobName of ['runs', 'waits']) await server.api(key, 'POST', 'submit-job', { jobName, type: 'cg-idp', settings: { sequences: ['DSHAKRHHGYKRKFHEKHHSHRGY'], steps: 90_000_000 } })
  await ann.open('jobs/waits')
  await page.getByText('Queued').first().waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByRole('region', { name: 'Why it failed' }).waitFor()
}

/** Each page while the server is down, and when it is back. */
async function away(server, key, ann) {
  const { page } = ann
  ann.expect(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_INCOMPLETE|ERR_NETWORK|net::ERR|Failed to fetch dynamically imported module/)
  const here = (name) => page.getByRole('link', { name, exact: true }).first().click()
  // One after the other, as each retries on its own.
  const back = async () => {
    while (await page.getByRole('alert').count() > 0) await page.getByRole('alert').first().waitFor({ state: 'detached' })
  }

  // A log uses a single stream, although the record of its job changes every second.
  let streams = 0
  const count = (request) => (streams += /\/events\?logs=1/.test(request.url()) ? 1 : 0)
  page.on('request', count)
  await ann.open('jobs/runs?tab=log')
  await page.getByText('CALVADOS').first().waitFor()
  await page.waitForTimeout(7000)
  page.off('request', count)
  assert.equal(streams, 1)

  // Live pages show that they are not live, and resume automatically.
  for (const [path, there] of [['jobs', 'folded-2'], ['jobs/runs', 'runs'], ['jobs/runs?tab=log', 'CALVADOS']]) {
    await ann.open(path)
    await page.getByText(there).first().waitFor()
    await page.getByText('● live', { exact: true }).waitFor()
    await server.stop('SIGKILL')
    await page.getByText('not live').waitFor()
    await page.getByText(there).first().waitFor()
    await ann.look('away-' + path.replace(/\W+/g, '-'))
    await server.start(config)
    await page.getByText('● live', { exact: true }).waitFor()
    await back()
  }

  // A structure is reloaded after a lost connection.
  let broken = 0
  await page.route(/\.pdb/, (route) => {
    broken++
    return route.abort()
  }, { times: 1 })
  await ann.open('jobs/folded-2')
  await page.locator('[data-view=model] [data-ready]').waitFor()
  await back()
  assert.equal(broken, 1)

  // Other pages show an error until they can be loaded.
  await ann.open('jobs')
  await page.getByText('folded-2').first().waitFor()
  for (const [link, title] of [['Files', 'Files'], ['New job', 'New job'], ['Admin', 'Admin'], ['API', 'API']]) { await here(link); await page.getByRole('heading', { name: title }).first().waitFor().catch(() => {}) }
  await here('Jobs')
  await page.getByText('folded-2').first().waitFor()
  await server.stop('SIGKILL')
  for (const link of ['Files', 'New job', 'Admin']) {
    await here(link)
    await page.getByRole('alert').getByText('The server is not responding').first().waitFor()
    await page.getByRole('button', { name: 'Try again' }).first().waitFor()
    await ann.look('away-' + link.replace(' ', '-'))
  }
  await here('Files')
  await page.getByRole('alert').getByText('The server is not responding').first().waitFor()
  await server.start(config)
  await back()
  await page.getByText('No files yet').waitFor()

  // A form keeps its text, and can be submitted when the server is back.
  await ann.open('new/toy-fold')
  await page.getByRole('textbox', { name: 'Residues' }).fill('21')
  await page.locator('#job-name').fill('kept')
  await server.stop('SIGKILL')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('alert').getByText('The server is not responding').waitFor()
  await ann.look('away-form')
  await server.start(config)
  assert.equal(await page.getByRole('textbox', { name: 'Residues' }).inputValue(), '21')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'kept' }).waitFor()
}

/** A job is deleted elsewhere. */
async function deleted(server, key, ann) {
  const { page } = ann
  ann.expect(/status of 404/)
  await ann.open('jobs/folded-2')
  await page.locator('[data-view=model] [data-ready]').waitFor()
  await server.api(key, 'DELETE', 'jobs/folded-2')
  await page.getByText('This job was deleted.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Download', exact: true }).count(), 0)
  await ann.look('job-deleted')
  await ann.open('jobs')
  await page.getByRole('row', { name: /kept/ }).waitFor()
  await server.api(key, 'POST', 'jobs/kept/cancel', {}).catch(() => {})
  await server.api(key, 'POST', 'jobs/runs/cancel', {})
  await server.end(key, 'runs')
  await server.api(key, 'DELETE', 'jobs/runs')
  await page.getByRole('row', { name: /runs/ }).waitFor({ state: 'detached' })
}

/** The key is deleted while its user is typing. */
async function ended(server, browser) {
  const first = server.key('lab', 'bob@lab.example')
  const second = server.key('lab', 'bob@lab.example')
  const bob = await browser.person(server)
  const { page } = bob
  await bob.signIn(first)
  await bob.open('new/toy-fold')
  await page.getByRole('textbox', { name: 'Residues' }).fill('44')
  await page.getByText(/can run here|Starts in about/).waitFor()
  const ids = server.molrun('key', 'list').match(/\b[a-z]{12}\b/g) ?? []
  const mine = ids.find((id) => first.includes(id))
  assert.ok(mine, 'the key is not listed')
  server.molrun('key', 'delete', mine)
  await page.getByRole('textbox', { name: 'Residues' }).fill('45')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.getByText('Your session has ended').waitFor()
  await bob.look('session-ended')
  await page.getByLabel('API key').fill(second)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Restored from your unsaved draft.').waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Residues' }).inputValue(), '45')
  bob.fine('the session that ended')
  await bob.close()
}
