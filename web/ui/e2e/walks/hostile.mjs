// Input from an attacker: names, notes, tags, logs, cells, remarks of structures, file names, lines
// of 10 MB. All of it is shown as text: nothing runs, nothing freezes.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const config = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n[runner]\ncpus = 2\n`

const markup = '"><img src=x onerror=hurt()><svg onload=hurt()>' // a name has no /
const longest = 30_000 // maximum milliseconds that the page is blocked, even on a very busy machine; quadratic algorithms would take minutes

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example', 'admin')
  const ann = await browser.person(server)
  const { page } = ann
  const dialogs = []
  page.on('dialog', (d) => {
    dialogs.push(d.message())
    void d.dismiss()
  })
  page.on('popup', (p) => dialogs.push(p.url()))
  await page.addInitScript(() => {
    window.hurt = () => { window.isHurt = true; alert('hurt') }
    window.blocked = 0
    new PerformanceObserver((list) => { for (const e of list.getEntries()) window.blocked = Math.max(window.blocked, e.duration) }).observe({ type: 'longtask', buffered: true })
  })
  await ann.signIn(key)

  /** Nothing ran on the page, and it was not blocked for long. */
  async function sound(where) {
    const { isHurt, blocked, made } = await page.evaluate(() => ({
      isHurt: window.isHurt, blocked: Math.round(window.blocked),
      made: document.querySelectorAll('[onerror], [onload], img[src="x"], iframe, object, embed').length + [...document.querySelectorAll('a[href]')].filter((a) => !/^https?:/.test(a.protocol)).length,
    }))
    assert.ok(!isHurt && dialogs.length === 0, `something ran: ${where} ${dialogs}`)
    assert.equal(made, 0, `markup became elements: ${where}`)
    assert.ok(blocked < longest, `${where} was blocked for ${blocked} ms`)
    ann.fine(where)
    return `${where} ${blocked}`
  }
  const times = []
  ann.expect(/status of 422.*\/tables\/wide/) // a table with a line of 10 MB is rejected with a message

  // The server rejects direction marks in names and notes, but not right-to-left letters.
  const job = `enemy ${markup} שלום مرحبا`
  const batch = `rows ${markup}`
  const labels = { note: `<script>hurt()</script>\nשלום مرحبا\n${'long '.repeat(700)}`, tags: { 'k<b>': markup.slice(0, 60) } }
  await server.api(key, 'POST', 'submit-job', { jobName: job, type: 'toy-hostile', settings: {}, ...labels })
  await server.api(key, 'POST', 'submit-batch', { batchName: batch, type: 'toy-hostile', settings: [{ megabytes: 0 }, { megabytes: 0, fail: true }], ...labels })
  const { status, failure } = await server.end(key, job)
  assert.equal(status, 'COMPLETED', JSON.stringify(failure))
  await server.end(key, batch)

  await ann.open('jobs')
  await page.getByText('batch of 2').waitFor()
  await page.getByRole('button', { name: `Rows of ${batch}` }).click()
  await page.getByRole('link', { name: `${batch}-2` }).waitFor()
  await ann.look('hostile-jobs')
  times.push(await sound('jobs'))
  await page.getByLabel('Search').fill(markup)
  await page.waitForURL(/search=/)
  times.push(await sound('search'))

  const address = 'jobs/' + encodeURIComponent(job)
  await ann.open(address)
  await page.locator('[data-view=structure] [data-ready]').waitFor()
  await page.locator('[data-view=structure]').getByText('onerror').first().waitFor()
  times.push(await sound('structure'))
  for (const [view, seen] of [['table', 'td'], ['wide', '[role=alert]'], ['series', 'canvas'], ['alignment', 'canvas, .name, pre'], ['tree', 'svg, canvas, pre'], ['image', 'img'], ['text', 'pre, p:not(.holder), [role=alert], [role=region]']]) {
    const panel = page.locator(`[data-view=${view}]`)
    await panel.scrollIntoViewIfNeeded()
    await panel.locator(seen).first().waitFor()
    times.push(await sound(view))
  }
  // An SVG is shown as an image, and its scripts do not run.
  await page.waitForFunction(() => document.querySelector('[data-view=image] img')?.naturalWidth === 50)
  times.push(await sound('picture'))
  await page.locator('[data-view=table]').getByText(markup.slice(2, 20)).first().waitFor()
  await ann.look('hostile-job')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('hostile-job')
  await page.setViewportSize({ width: 1280, height: 800 })

  await ann.open(address + '?tab=log')
  await page.getByRole('log').getByText('last line').waitFor()
  await page.getByLabel('Find in the log').fill('hurt')
  await ann.look('hostile-log')
  times.push(await sound('log'))
  await ann.open(address + '?tab=files')
  await page.getByText('long.txt').first().waitFor()
  await ann.look('hostile-files')
  await page.getByRole('button', { name: 'Preview image.svg' }).click()
  await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth === 50)
  times.push(await sound('files'))
  await page.keyboard.press('Escape')
  await ann.open(address + '?tab=input')
  await page.waitForLoadState('networkidle')
  times.push(await sound('input'))
  await ann.open(address + '?tab=api')
  await page.waitForLoadState('networkidle')
  times.push(await sound('api'))

  // Files of a program do not run with our origin when opened by URL.
  for (const file of ['page.html', 'image.svg']) {
    const path = `jobs/${encodeURIComponent(job)}/files/${file}`
    const answer = await page.request.get(`${server.url}/${path}`)
    assert.match(answer.headers()['content-security-policy'] ?? '', /^sandbox; default-src 'none'/)
    assert.match(answer.headers()['content-disposition'] ?? '', /^attachment/)
    const download = page.waitForEvent('download')
    await page.evaluate((path) => location.assign('../' + path), path)
    await (await download).cancel()
    times.push(await sound(file))
  }

  await ann.open('jobs/' + encodeURIComponent(batch))
  await page.getByText('onerror=hurt()').first().waitFor()
  await page.getByRole('rowheader').first().waitFor()
  await page.getByRole('button', { name: 'Plot two metrics' }).click()
  await ann.look('hostile-batch')
  times.push(await sound('batch'))
  await ann.open('jobs/' + encodeURIComponent(`${batch}-2`))
  await page.getByRole('region', { name: 'Why it failed' }).getByText('onerror=hurt()').first().waitFor()
  await ann.look('hostile-failed')
  times.push(await sound('failed'))
  await ann.open(`compare?job=${encodeURIComponent(job)}&job=${encodeURIComponent(`${batch}-1`)}`)
  await page.waitForLoadState('networkidle')
  times.push(await sound('compare'))

  // Forms: texts of the algorithm, and files of a user.
  await ann.open('new')
  await page.getByRole('link', { name: /of an enemy/ }).first().waitFor()
  times.push(await sound('new'))
  await ann.open('new/toy-hostile')
  await page.locator('[data-field=megabytes]').waitFor()
  await ann.look('hostile-form')
  await ann.open('new/toy-figure')
  await page.getByRole('button', { name: 'Use several values of Value' }).click()
  await page.getByRole('textbox', { name: 'Value' }).fill(Array.from({ length: 500 }, () => markup).join('\n'))
  await page.getByText(/500 jobs/).first().waitFor()
  times.push(await sound('form'))
  await ann.open('files')
  const upload = join(server.dir, '<img src=x onerror=hurt()>.csv')
  writeFileSync(upload, 'a,b\n1,<script>hurt()</script>\n')
  await page.locator('input[type=file]').setInputFiles(upload)
  await page.getByText('onerror=hurt()').first().waitFor()
  await ann.look('hostile-uploads')
  times.push(await sound('uploads'))
  for (const part of ['admin', 'admin/audit']) {
    await ann.open(part)
    await page.waitForLoadState('networkidle')
    times.push(await sound(part))
  }
  console.log(`     longest blocks in ms: ${times.join(', ')}`)
  await ann.close()
}
