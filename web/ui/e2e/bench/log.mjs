// An hour of following a log, compressed to three minutes: 360,000 lines.
import { config } from './big.mjs'
import { mb, Watched } from './watched.mjs'

export { config }

const lines = 360_000

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(key)
  await server.api(key, 'POST', 'submit-job', { jobName: 'hour', type: 'big', settings: { kind: 'slow-lines', size: lines } })
  await ann.open('jobs/hour?tab=log')
  await page.locator('[role=log] div').nth(10).waitFor()
  const first = await watched.left()
  let most = first
  while ((await server.api(key, 'GET', 'jobs/hour?wait=20s')).status === 'RUNNING') {
    const now = await watched.left()
    if (now.heap > most.heap) most = now
  }
  await page.getByText('Completed').first().waitFor()
  await page.locator('[role=log] div').filter({ hasText: String(lines - 1) }).first().waitFor()
  const last = await watched.left()
  tell('following 360,000 lines (an hour of 100 a second, sent in minutes): the heap at 2,000 lines, at most, at the end', [first, most, last].map((l) => mb(l.heap)).join(', '))
  tell('the same: nodes at the beginning, at the end', `${first.nodes}, ${last.nodes}`)
  ann.fine('an hour of log')
  await ann.close()
}
