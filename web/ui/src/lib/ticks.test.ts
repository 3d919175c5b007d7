import { expect, test } from 'vitest'
import { logTicks, placeTicks, ticks } from './ticks'

test.each([[0, 10, [0, 2, 4, 6, 8, 10]], [-0.3, 0.31, [-0.2, 0, 0.2]], [5, 5, [5]], [1e-9, 4e-9, [1e-9, 2e-9, 3e-9, 4e-9]]])('ticks %f to %f', (low, high, want) => expect(ticks(low, high)).toEqual(want))

test.each([
  [1, 23, [1, 2, 5, 10, 20]],
  [0.5, 3, [0.5, 1, 2]],
  [1e-3, 1e4, [1e-3, 0.1, 10, 1000]],
  [12, 18, [12, 14, 16, 18]],
  [0, 5, []],
])('ticks %f to %f on a logarithmic axis', (low, high, want) => expect(logTicks(low, high)).toEqual(want))

test('residues with round numbers are labelled', () => {
  expect(placeTicks([1, 2, 3], 5)).toEqual([0, 1, 2])
  expect(placeTicks(Array.from({ length: 129 }, (_, i) => i + 19), 8)).toEqual([1, 21, 41, 61, 81, 101, 121]) // 20, 40 … 140
  expect(placeTicks([8, 9, 10, 8, 9, 10], 2)).toEqual([2, 5]) // two chains
})
