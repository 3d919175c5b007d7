// Limits the size of the first page: the compressed files that index.html loads.
import { readFileSync, statSync } from 'node:fs'

const most = 31_000 // bytes of scripts and styles that the first page loads
const page = readFileSync('dist/index.html', 'utf8')
const first = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((m) => 'dist/' + m[1] + '.gz')
const total = first.reduce((sum, f) => sum + statSync(f).size, 0)
console.log(`first page: ${first.length} files, ${(total / 1000).toFixed(1)} kB`)
if (total > most) {
  console.error(`The first page has ${total} bytes, more than ${most}.`)
  process.exit(1)
}
