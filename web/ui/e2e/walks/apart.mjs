// Two organizations on one server: neither can see the other's data, even with its addresses;
// members of one organization see each other's jobs.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\n`

export default async function ({ server, browser }) {
  const ann = server.key('lab', 'ann@lab.example')
  const bob = server.key('lab', 'bob@lab.example')
  const eve = server.key('elsewhere', 'eve@elsewhere.example', 'admin')
  await server.run(ann, 'quietword', 'toy-fold', { residues: 12 })
  await server.api(ann, 'POST', 'submit-batch', { batchName: 'quietbatch', type: 'toy-figure', settings: [{ value: 1 }, { value: 2 }] })
  await upload(server, ann, 'quietfile.pdb', 'REMARK quiet\nEND\n')

  const person = await browser.person(server)
  const { page } = person
  await person.signIn(eve)
  await page.getByText('No jobs yet.').waitFor()
  person.expect(/status of (40[34]|422)/)
  const telling = /quietfile|model\.pdb|toy-fold \d|ann@lab|bob@lab|92\.|residues/i
  for (const [path, text] of [
    ['jobs?search=quiet', 'No jobs match'], ['jobs?all=1&search=quietword', 'No jobs match'],
    ['jobs/quietword', 'Job not found'], ['jobs/quietword?tab=log', 'Job not found'], ['jobs/quietword?tab=files', 'Job not found'],
    ['jobs/quietbatch', 'Job not found'], ['jobs/quietbatch-1', 'Job not found'],
    ['new/toy-figure?from=quietbatch-1', /can’t be shown/], ['compare?job=quietword&job=quietbatch-1', 'The jobs can’t be compared'], ['files', 'No files yet'], ['shared/quietword', 'This link is not valid'],
  ]) {
    await person.open(path)
    await page.getByText(text).first().waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), telling, path)
    await person.look('apart-' + path.replace(/\W+/g, '-'))
  }
  for (const path of ['admin', 'admin/users', 'admin/keys', 'admin/usage', 'admin/storage', 'admin/audit']) {
    await person.open(path)
    await page.waitForLoadState('networkidle')
    assert.doesNotMatch(await page.locator('main').innerText(), /quiet|ann@lab|bob@lab/, path)
  }

  // API requests with the session of the other organization.
  const answers = await page.evaluate(async () => {
    const answer = async (path, method = 'GET', body) => {
      const r = await fetch('../' + path, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) })
      return `${path} ${r.status} ${(await r.text()).slice(0, 500)}`
    }
    return Promise.all([
      ...['', '/views', '/files', '/files/model.pdb', '/logs', '/events', '/series/loss', '/matrices/pae', '/tables/pae', '/dependants'].map((part) => answer('jobs/quietword' + part)),
      answer('jobs/quietbatch/table'), answer('jobs/quietword/cancel', 'POST', {}), answer('jobs/quietword', 'DELETE'), answer('jobs/quietword', 'PATCH', { note: 'mine' }),
      answer('result', 'POST', { jobName: 'quietword' }), answer('jobs/quietword/shares', 'POST', {}),
      answer('estimate', 'POST', { jobName: 'x', type: 'toy-figure', settings: { before: 'job:quietbatch-1/figures.txt' } }),
      answer('submit-job', 'POST', { jobName: 'x', type: 'toy-figure', settings: { before: 'job:quietbatch-1/figures.txt' } }),
      answer('submit-job', 'POST', { jobName: 'y', type: 'toy-fold', settings: { template: 'inputs/quietfile.pdb' } }),
    ])
  })
  for (const a of answers) {
    if (a.startsWith('estimate 200')) continue
    assert.match(a, /^\S+ 4\d\d /, 'an answer to a stranger')
    assert.doesNotMatch(a, /ann@lab/)
  }
  person.fine('the stranger')
  await person.close()

  const member = await browser.person(server)
  await member.signIn(bob)
  await member.open('jobs/quietword')
  await member.page.locator('[data-view=model] [data-ready]').waitFor()
  await member.page.getByText('ann@lab.example').first().waitFor()
  assert.equal(await member.page.getByRole('button', { name: 'Share' }).count(), 0)
  member.fine('the colleague')
  await member.close()
  assert.equal((await server.api(ann, 'GET', 'jobs/quietword')).status, 'COMPLETED')
}

async function upload(server, key, filename, text) {
  const made = await server.api(key, 'PUT', `upload/${filename}`, {})
  const { method = 'PUT', headers = {} } = made.instructions ?? {}
  const answer = await fetch(made.uploadUrl, { method, headers, body: text })
  assert.ok(answer.ok, `${answer.status} ${await answer.text()}`)
  await server.api(key, 'POST', `upload/${made.fileId}/complete`, { size: text.length })
}
