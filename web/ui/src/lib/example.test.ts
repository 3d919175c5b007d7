import { expect, test, vi } from 'vitest'

vi.stubGlobal('document', { baseURI: 'http://page.example/ui/' })
vi.stubGlobal('fetch', async (url: string | URL) => new Response(new URL(url).pathname))
const sent: string[] = []
vi.mock('./upload.svelte', () => ({ uploads: { add: async (f: File, folder: string) => (sent.push(`${folder}/${f.name} ${await f.text()}`), `ref:${f.name}`) } }))
const { bring } = await import('./example')

test('each file of an example is uploaded once, to a folder of its program', async () => {
  const settings = { a: 'example:x.pdb', b: ['example:x.pdb', 'job:j/y.pdb'], n: 5 }
  expect(await bring({ type: 'dock', version: '1' }, settings)).toEqual({ a: 'ref:x.pdb', b: ['ref:x.pdb', 'job:j/y.pdb'], n: 5 })
  expect(sent).toEqual(['examples/dock/x.pdb /algorithms/dock/example/x.pdb'])
})
