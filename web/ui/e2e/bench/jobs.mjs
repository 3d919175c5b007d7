// The list of jobs, with ten and 100,000 jobs, and with 600 events per second.
import { execFileSync } from 'node:child_process'
import { createServer, request } from 'node:http'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Server } from '../harness.mjs'
import { mb, median, ms, tasks, Watched } from './watched.mjs'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

export default async function ({ server: { binary }, browser, tell }) {
  for (const jobs of [10, 100_000]) {
    const server = new Server(binary)
    try {
      execFileSync('go', ['run', './app/test/bench', 'seed', '--data', server.data, '--jobs', String(jobs)], { cwd: root })
      await server.start()
      await list(server, browser, tell, jobs)
      if (jobs > 1000) await streamed(server, browser, tell)
    } finally {
      await server.remove()
    }
  }
}

async function list(server, browser, tell, jobs) {
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(server.key('lab', 'ann@lab.example', 'admin'))
  const rows = page.locator('tbody tr').nth(9)
  const timed = async (n, act) => {
    const times = []
    for (let i = 0; i < n; i++) {
      const began = performance.now()
      await act(i)
      times.push(performance.now() - began)
    }
    return median(times)
  }
  const what = `${jobs.toLocaleString('en')} jobs`
  await watched.begin()
  tell(`${what}: from the address to the list`, ms(await timed(7, async () => {
    await ann.open('')
    await rows.waitFor()
  })))
  if (jobs > 1000) {
    const turned = (act) => async () => {
      const answer = page.waitForResponse((r) => /\/jobs\?/.test(r.url()))
      await act()
      await answer
      await page.locator('table[aria-busy=false]').waitFor()
    }
    tell(`${what}: next page`, ms(await timed(15, turned(() => page.getByRole('button', { name: 'Next page' }).click()))))
    tell(`${what}: filter by state`, ms(await timed(4, (i) => turned(() => page.getByLabel('Status').selectOption(['FAILED', 'COMPLETED'][i % 2]))())))
    tell(`${what}: search, with the 250 ms after the last key`, ms(await timed(4, (i) => turned(() => page.getByRole('searchbox').fill(String(i)))())))
  }
  tell(`${what}: longest task of all that`, tasks(await watched.longest()))
  tell(`${what}: the heap`, mb(await watched.heap()))
  ann.fine(what)
  await ann.close()
}

const perSecond = 600
const seconds = 30

/** Forwards requests, but generates the events. */
async function proxy(server, jobs) {
  let sent = 0
  const front = createServer((q, a) => {
    if (q.url.startsWith('/events')) {
      a.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const timer = setInterval(() => {
        for (let i = 0; i < perSecond / 20; i++) {
          const n = sent++
          const status = ['QUEUED', 'RUNNING', 'COMPLETED'][n % 3]
          const job = n % 6 === 0 ? { ...jobs[0], jobId: '7ZZZZZZZ' + String(n).padStart(18, '0'), jobName: `new-${n}`, status: 'QUEUED', attempts: 0 } : { ...jobs[n % jobs.length], status, attempts: 1 }
          a.write(`id: ${n}\nevent: job\ndata: ${JSON.stringify(job)}\n\n`)
        }
      }, 50)
      return a.on('close', () => clearInterval(timer))
    }
    const on = request(server.url + q.url, { method: q.method, headers: q.headers }, (r) => {
      a.writeHead(r.statusCode, r.headers)
      r.pipe(a)
    })
    on.on('error', () => a.destroy())
    q.pipe(on)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  return { url: `http://127.0.0.1:${front.address().port}`, count: () => sent, close: () => (front.close(), front.closeAllConnections()) }
}

async function streamed(server, browser, tell) {
  const key = server.key('lab', 'ann@lab.example')
  const { jobs } = await server.api(key, 'GET', 'jobs?organization=true&limit=50')
  const front = await proxy(server, jobs)
  const ann = await browser.person(front)
  const watched = await Watched.of(ann)
  await ann.signIn(key)
  await ann.page.locator('tbody tr').nth(9).waitFor()
  const heap = await watched.heap()
  const sent = front.count()
  await watched.begin()
  await ann.page.waitForTimeout(1000 * seconds)
  const longest = await watched.longest()
  const rate = (front.count() - sent) / seconds
  tell(`${rate.toFixed(0)} events a second for ${seconds} s: longest task`, tasks(longest))
  tell('the same: CPU of the page', `${(longest.all / seconds / 10).toFixed(0)} %`)
  tell('the same: the heap before and after', `${mb(heap)}, ${mb(await watched.heap())}`)
  await ann.close()
  front.close()
}
