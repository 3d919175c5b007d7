// Benchmarks the application in a real browser: node e2e/bench.mjs BINARY [PART…]. It prints a
// Markdown table.
import { availableParallelism, loadavg } from 'node:os'
import { Browser, Server } from './harness.mjs'

const parts = ['sizes', 'viewer', 'results', 'jobs', 'log', 'people', 'leaks']
const [binary, ...chosen] = process.argv.slice(2)
if (!binary || chosen.some((c) => !parts.includes(c))) {
  console.error(`usage: node e2e/bench.mjs BINARY [PART…], with parts of: ${parts.join(', ')}`)
  process.exit(2)
}
const browser = new Browser()
await browser.start()
const load = () => loadavg()[0].toFixed(1)
console.log(`${availableParallelism()} CPUs, load ${load()} at the beginning\n\n| what | measured |\n|---|---|`)
let failed = 0
for (const name of chosen.length > 0 ? chosen : parts) {
  const { default: part, config } = await import(`./bench/${name}.mjs`)
  const server = new Server(binary)
  try {
    await part({ server: config === undefined ? server : await server.start(config).then(() => server), browser, tell: (what, value) => console.log(`| ${what} | ${value} |`) })
  } catch (e) {
    failed++
    console.error(`${name}: ${e.stack ?? e}\n${server.log.split('\n').slice(-10).join('\n')}`)
  } finally {
    await server.remove()
  }
}
console.log(`\nload ${load()} at the end`)
await browser.stop()
process.exit(failed > 0 ? 1 : 0)
