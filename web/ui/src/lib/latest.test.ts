import { expect, test } from 'vitest'
import { Latest } from './latest'

test('values in between are skipped, but never the last', async () => {
  const seen: number[] = []
  const latest = new Latest<number>(async (n) => {
    await Promise.resolve()
    seen.push(n)
  })
  void latest.set(1)
  void latest.set(2)
  await latest.set(3)
  expect(seen).toEqual([1, 3])
  await latest.set(4)
  expect(seen).toEqual([1, 3, 4])
})

test('after a failure the next value runs', async () => {
  const latest = new Latest<number>(async (n) => {
    if (n === 1) throw new Error('one')
  })
  await expect(latest.set(1)).rejects.toThrow('one')
  await latest.set(2)
})
