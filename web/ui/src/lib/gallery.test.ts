import { beforeAll, expect, test, vi } from 'vitest'
import { Gallery, type Artist } from './gallery'
import type { Model } from './molecule'

const model = (name: string): Model => ({ url: name, name, format: 'pdb' })
const never = new AbortController().signal
beforeAll(() => void (URL.createObjectURL = (b) => 'blob:' + (b as Blob).type))

/** Counts concurrent renderers. */
function studio() {
  const told: string[] = []
  let open = 0
  const hire = async (): Promise<Artist> => {
    told.push('hired ' + ++open)
    return {
      async draw(m) {
        told.push('draws ' + m.name)
        await Promise.resolve()
        if (m.name === 'bad') throw new Error('no atoms')
        return new Blob([], { type: m.name })
      },
      dispose: () => void told.push('gone ' + --open),
    }
  }
  return { told, hire }
}
const fetch = async () => new Uint8Array()

test('pictures are drawn in turn, with one context', async () => {
  const { told, hire } = studio()
  const g = new Gallery(hire, fetch)
  expect(await Promise.all(['a', 'b', 'c'].map((n) => g.draw(model(n), undefined, never)))).toEqual(['blob:a', 'blob:b', 'blob:c'])
  expect(told).toEqual(['hired 1', 'draws a', 'draws b', 'draws c'])
  g.close()
  await vi.waitFor(() => expect(told.at(-1)).toBe('gone 0'))
})

test('after a failure, another context draws the rest', async () => {
  const { told, hire } = studio()
  const g = new Gallery(hire, fetch)
  const [bad, good] = await Promise.allSettled([g.draw(model('bad'), undefined, never), g.draw(model('b'), undefined, never)])
  expect([bad!.status, good!.status]).toEqual(['rejected', 'fulfilled'])
  expect(told.filter((t) => t.startsWith('hired') || t.startsWith('gone'))).toHaveLength(3)
  g.close()
})

test('an aborted picture is not drawn, and the context is kept', async () => {
  const { told, hire } = studio()
  const g = new Gallery(hire, fetch)
  const gone = new AbortController()
  const all = [g.draw(model('a'), undefined, never), g.draw(model('b'), undefined, gone.signal), g.draw(model('c'), undefined, never)]
  gone.abort()
  expect((await Promise.allSettled(all)).map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(told).toEqual(['hired 1', 'draws a', 'draws c'])
  g.close()
})
