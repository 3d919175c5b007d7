// Walks through the application in a real browser: node e2e/run.mjs BINARY [WALK…]. With
// SHOTS=FOLDER, it saves a screenshot of each page that it checks. Long walks are skipped without
// LONG=1 unless named; walks whose programs are missing are always skipped.
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Browser, Server } from './harness.mjs'

const [binary, ...chosen] = process.argv.slice(2)
if (!binary) {
  console.error('usage: node e2e/run.mjs BINARY [WALK…]')
  process.exit(2)
}
const names = readdirSync(new URL('walks', import.meta.url)).filter((f) => f.endsWith('.mjs')).map((f) => f.slice(0, -4)).sort()
/** Whether a program is installed. */
const there = (program) => process.env.PATH.split(delimiter).some((folder) => {
  try {
    accessSync(join(folder, program), constants.X_OK)
    return true
  } catch {
    return false
  }
})

/** Why a walk is skipped, or "". */
function left(name, { needs = [], long = false }) {
  const missing = needs.filter((p) => !there(p))
  if (missing.length > 0) return `${missing.join(', ')} is not installed`
  return long && !process.env.LONG && !chosen.includes(name) ? 'it takes long; LONG=1 includes it' : ''
}

const browser = new Browser(process.env.SHOTS)
await browser.start()
let failed = 0
for (const name of names.filter((n) => chosen.length === 0 || chosen.includes(n))) {
  const { default: walk, config, ...about } = await import(`./walks/${name}.mjs`)
  const why = left(name, about)
  if (why) {
    console.log(`skip ${name}: ${why}`)
    continue
  }
  const server = new Server(binary)
  const began = Date.now()
  try {
    await server.start(config)
    const skipped = await walk({ server, browser })
    console.log(skipped ? `skip ${name}: ${skipped}` : `ok   ${name} ${((Date.now() - began) / 1000).toFixed(1)} s`)
  } catch (e) {
    failed++
    console.log(`FAIL ${name}\n${e.stack ?? e}\n${server.log.split('\n').slice(-20).join('\n')}`)
  } finally {
    await server.remove()
  }
}
await browser.stop()
process.exit(failed > 0 ? 1 : 0)
