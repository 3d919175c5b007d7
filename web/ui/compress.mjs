// Replaces each built file except the start page by its gzip form, reproducibly. Zopfli output is
// a twentieth smaller than that of gzip -9, but takes longer.
import { gzipAsync } from '@gfx/zopfli'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

for (const name of readdirSync('dist/assets').sort()) {
  const path = join('dist/assets', name)
  if (name.endsWith('.gz')) continue
  const content = readFileSync(path)
  writeFileSync(path + '.gz', await gzipAsync(content, { numiterations: content.length < 200_000 ? 15 : 5 }))
  rmSync(path)
}
