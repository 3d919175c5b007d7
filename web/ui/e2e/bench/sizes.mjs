// The compressed size of the scripts and styles of each page, with an empty cache.
import { big, config } from './big.mjs'

export { config }

const pages = [
  ['Jobs, the first page', '', 'table'],
  ['New job', 'new', 'main a[href*="new/"]'],
  ['New job, a form', 'new/cg-idp', '#job-name'],
  ['Job, its log', 'jobs/matrix?tab=log', '[role=log]'],
  ['Job, a matrix', 'jobs/matrix', '.matrix canvas'],
  ['Job, a structure', 'jobs/chain', '[data-ready]'],
  ['Files', 'files', '[role=group]'],
  ['Account', 'account', 'main table'],
  ['Admin', 'admin/users', 'main table'],
  ['API', 'api', '.swagger-ui .opblock'],
]

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  await big(server, key, 'chain', 'chain', 140)
  await big(server, key, 'matrix', 'matrix', 300)
  for (const [what, path, shown] of pages) {
    const ann = await browser.person(server)
    const signed = await ann.context.request.post(`${server.url}/session`, { data: { key } })
    if (!signed.ok()) throw new Error(`No session: ${signed.status()} ${await signed.text()}`)
    const cdp = await ann.context.newCDPSession(ann.page)
    await cdp.send('Network.enable')
    const wanted = new Set()
    let size = 0
    cdp.on('Network.responseReceived', (e) => (e.type === 'Script' || e.type === 'Stylesheet') && wanted.add(e.requestId))
    cdp.on('Network.loadingFinished', (e) => wanted.has(e.requestId) && (size += e.encodedDataLength))
    await ann.open(path)
    await ann.page.locator(shown).first().waitFor({ timeout: 120_000 })
    await ann.page.waitForTimeout(1000)
    tell(`${what}: scripts and styles`, `${(size / 1000).toFixed(1)} kB`)
    await ann.close()
  }
}
