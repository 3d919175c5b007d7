// A real server with a fresh data directory, a real browser, and checks for every page: no console
// message, no CSP violation, no request to another origin, no axe violation, no horizontal
// scrolling.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
const patience = 60_000 // timeout in milliseconds, for busy machines

/** A free port. */
export async function freePort() {
  const s = createServer().listen(0, '127.0.0.1')
  await once(s, 'listening')
  const { port } = s.address()
  s.close()
  await once(s, 'close')
  return port
}

export class Server {
  constructor(binary) {
    this.binary = binary
    this.dir = mkdtempSync(join(tmpdir(), 'molrun-ui-'))
    this.data = join(this.dir, 'data')
    this.log = ''
  }

  async start(config = '') {
    this.port ??= await freePort()
    this.url = `http://127.0.0.1:${this.port}`
    writeFileSync(join(this.dir, 'config.toml'), config)
    this.process = spawn(this.binary, ['serve', '--init', '--config', join(this.dir, 'config.toml'), '--data', this.data, '--listen', `127.0.0.1:${this.port}`], { cwd: this.dir })
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on('data', (d) => (this.log += d))
    for (let end = Date.now() + patience; ; await new Promise((r) => setTimeout(r, 50))) {
      assert.ok(this.process.exitCode === null && Date.now() < end, `The server does not start:\n${this.log}`)
      if (await fetch(this.url + '/healthz').catch(() => null)) return
    }
  }

  async stop(signal = 'SIGTERM') {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return
    this.process.kill(signal)
    await once(this.process, 'exit')
  }

  async remove() {
    await this.stop()
    rmSync(this.dir, { recursive: true, force: true })
  }

  molrun(...args) {
    return execFileSync(this.binary, [...args, '--data', this.data], { cwd: this.dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  }

  /** Creates an API key. */
  key(organization, email, role = 'member') {
    return this.molrun('key', 'create', '--organization', organization, '--email', email, '--role', role)
  }

  /** Sends a request with a key and returns the JSON of the response. */
  async api(key, method, path, body) {
    const answer = await fetch(`${this.url}/${path}`, { method, headers: { 'x-api-key': key, 'content-type': 'application/json' }, body: body && JSON.stringify(body) })
    const text = await answer.text()
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
    return text && JSON.parse(text)
  }

  /** Submits a job and waits until it has finished. */
  async run(key, jobName, type, settings) {
    await this.api(key, 'POST', 'submit-job', { jobName, type, settings })
    return this.end(key, jobName)
  }

  /** Waits until a job has finished. */
  async end(key, jobName) {
    for (;;) {
      const job = await this.api(key, 'GET', `jobs/${encodeURIComponent(jobName)}?wait=50s`)
      if (job.status === 'COMPLETED' || job.status === 'FAILED') return job
    }
  }
}

export class Browser {
  constructor(shots) {
    this.shots = shots
    if (shots) mkdirSync(shots, { recursive: true })
  }

  async start() {
    this.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
        '--disable-dev-shm-usage', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
      ],
    })
  }

  stop() {
    return this.browser.close()
  }

  /** A user of a server, with a browser profile of their own. */
  async person(server, { width = 1280, height = 800 } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'Europe/Berlin', acceptDownloads: true })
    context.setDefaultTimeout(patience)
    const person = new Person(this, server, context, await context.newPage())
    person.watch()
    return person
  }
}

export class Person {
  constructor(browser, server, context, page) {
    Object.assign(this, { browser, server, context, page })
    this.trouble = []
    // Patterns of messages that a walk causes on purpose, and of the software renderer's
    // driver.
    this.expected = [/GL Driver Message/]
  }

  watch() {
    const tell = (text) => this.expected.some((e) => e.test(text)) || this.trouble.push(text)
    this.page.on('console', (m) => (m.type() === 'error' || m.type() === 'warning') && tell(`${m.text()} (${m.location().url})`))
    this.page.on('pageerror', (e) => tell(String(e.stack ?? e)))
    this.page.on('request', (r) => /^(data|blob):/.test(r.url()) || r.url().startsWith(this.server.url + '/') || tell('left the server: ' + r.url()))
  }

  /** Allows messages that match a pattern. */
  expect(pattern) {
    this.expected.push(pattern)
  }

  open(path) {
    return this.page.goto(`${this.server.url}/ui/${path}`)
  }

  async signIn(key) {
    this.expect(/status of 401/) // from the check whether a user is signed in
    await this.open('jobs')
    await this.page.getByLabel('API key').fill(key)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('heading', { name: 'Jobs' }).waitFor()
  }

  /** Drops a file on an element. */
  async drop(selector, name, text) {
    const dataTransfer = await this.page.evaluateHandle(([name, text]) => {
      const d = new DataTransfer()
      d.items.add(new File([text], name))
      return d
    }, [name, text])
    await this.page.locator(selector).waitFor()
    await this.page.dispatchEvent(selector, 'drop', { dataTransfer })
  }

  /** Checks a page in both themes, and takes screenshots if requested. */
  async look(name, { axe: rules = true } = {}) {
    for (const colorScheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme })
      if (rules) {
        await this.page.evaluate(axe + ';0')
        const { violations } = await this.page.evaluate(() => window.axe.run())
        assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`), [], `${name}, ${colorScheme}`)
      }
      if (this.browser.shots) {
        const { width } = this.page.viewportSize()
        await this.page.screenshot({ path: `${this.browser.shots}/${name}-${width}-${colorScheme}.png` })
      }
    }
    const over = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    assert.ok(over <= 0, `${name} scrolls sideways by ${over} pixels`)
    this.fine(name)
  }

  /** Fails if there were unexpected messages. */
  fine(when) {
    assert.deepEqual(this.trouble, [], when)
  }

  close() {
    return this.context.close()
  }
}
