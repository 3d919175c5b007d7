import { expect, test } from 'vitest'
import { inSlices } from './breathe'

test('long work lets others in between', async () => {
  let others = 0
  const timer = setInterval(() => others++, 1)
  const done: number[] = []
  await inSlices(120, (i) => {
    for (const end = performance.now() + 1; performance.now() < end; );
    done.push(i)
  })
  clearInterval(timer)
  expect(done).toEqual(Array.from({ length: 120 }, (_, i) => i))
  expect(others).toBeGreaterThan(0)
})

test('aborted work ends', async () => {
  const abort = new AbortController()
  const work = inSlices(1e9, (i) => i === 3 && abort.abort(), abort.signal)
  await expect(work).rejects.toThrow()
})
