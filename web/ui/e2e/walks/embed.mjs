// A shared structure embedded in another page, such as a notebook; no other page of the application
// can be embedded.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const settings = { sequences: ['DSHAKRHHGYKRKFHEKHHSHRGY'], steps: 20000 }
  await server.api(key, 'POST', 'submit-job', { jobName: 'shown', type: 'cg-idp', settings })
  for (let i = 0; (await server.api(key, 'GET', 'jobs/shown?wait=30s')).status !== 'COMPLETED'; i++) assert.ok(i < 10)
  const { url } = await server.api(key, 'POST', 'jobs/shown/share', { ttlSeconds: 600 })
  const token = url.split('/').pop()
  const frame = (path) => `<iframe width=700 height=460 src="${server.url}/ui/${path}"></iframe>`
  const other = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>Notebook</title><h1>Notebook</h1>${frame('embed/' + token)}${frame('shared/' + token)}${frame('jobs')}`))
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  const notebook = `http://127.0.0.1:${other.address().port}`
  try {
    const ann = await browser.person(Object.create(server, { url: { value: server.url } }))
    const { page } = ann
    for (const fine of [/frame-ancestors|X-Frame-Options|Refused to (display|frame)/, new RegExp('left the server: ' + notebook), /favicon/, /ERR_BLOCKED_BY_RESPONSE/, /chrome-error/, /xr-spatial-tracking/]) ann.expect(fine)
    await page.goto(notebook)
    const [shown, ...others] = page.frames().slice(1)
    await shown.locator('[data-view=trajectory] [data-ready]').waitFor()
    await shown.getByRole('link', { name: 'shown: full result' }).waitFor()
    assert.equal(await shown.locator('nav, [data-view]:not([data-view=trajectory])').count(), 0)
    for (const refused of others) assert.equal(await refused.locator('main').count(), 0, 'another page is shown in a frame')
    await ann.look('embed', { axe: false })
    ann.fine('the embedded structure')
    await ann.close()
  } finally {
    other.close()
  }
}
