import { fileURLToPath } from 'node:url'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

// The base is relative, so that the application works below any path. In development,
// `MOLRUN_URL=http://127.0.0.1:8080 npm run dev` proxies the API's routes.
const api = process.env.MOLRUN_URL ?? 'http://127.0.0.1:8080'

interface Module { importedIds: readonly string[] }

const ofFirst = new Set<string>()

/** The modules that the first page needs. They are smallest as one file. */
function first(info: (id: string) => Module | null): ReadonlySet<string> {
  const collect = (id: string) => {
    if (ofFirst.has(id)) return
    ofFirst.add(id)
    info(id)?.importedIds.forEach(collect)
  }
  if (ofFirst.size === 0) collect(fileURLToPath(new URL('src/main.ts', import.meta.url)))
  return ofFirst
}

/** In development, sets the base of deep pages, as the service does. */
const place: Plugin = { name: 'place', apply: 'serve', transformIndexHtml: (html) => html.replace('<base href="./">', '<base href="/ui/">') }

/** Mol* builds a table of 238,000 three-letter symbols when loaded; it works without it. */
const lean: Plugin = {
  name: 'lean',
  transform(code, id) {
    if (!id.endsWith('molstar/lib/mol-model/structure/model/types.js')) return null
    const lean = code.replace(/for \(const m of letters\) \{[^}]*\}/, '')
    if (lean === code) throw new Error('Mol* has changed: is its table of symbols smaller now?')
    return lean
  },
}

export default defineConfig({
  base: './',
  plugins: [svelte(), place, lean],
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // the first with light-dark()
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // data: URLs of scripts and styles would need a weaker CSP
    chunkSizeWarningLimit: 4000, // Mol*
    sourcemap: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: (id, build) => (first((m) => build.getModuleInfo(m)).has(id) ? 'first' : null) }] } } },
  },
  server: { proxy: { '^/(?!ui/|@|src/|node_modules/)': { target: api, headers: process.env.MOLRUN_KEY ? { 'x-api-key': process.env.MOLRUN_KEY } : {} } } },
  test: { environment: 'node', include: ['src/**/*.test.ts', 'e2e/*.test.mjs'] },
})
