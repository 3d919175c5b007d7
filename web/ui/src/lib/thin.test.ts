import { expect, test } from 'vitest'
import { thin } from './thin'

test('short lines stay whole', () => expect(thin([3, 1, null], 10)).toEqual([0, 1, 2]))

test('peaks, ends and gaps survive', () => {
  const values: (number | null)[] = Array.from({ length: 10_000 }, () => 1)
  values[5_555] = 100
  values[7_777] = -100
  values[20] = null
  const kept = thin(values, 100)
  expect(kept.length).toBeLessThanOrEqual(100)
  expect(kept).toEqual(expect.arrayContaining([0, 5_555, 7_777, 9_999]))
  expect(kept).toEqual([...kept].sort((a, b) => a - b))
})
