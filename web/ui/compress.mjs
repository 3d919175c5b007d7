// Replaces each built file but the start page by its gzip form, always the same for the
// same content. Zopfli makes it a twentieth smaller than gzip -9 does, and takes longer.
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
