import { expect, test } from 'vitest'
import { found, pageIn } from './pages'

test('entries are found by their words', () => {
  const all = ['Ann', 'bob', 'Hannah']
  expect(found(all, (e) => e, ' ANN ')).toEqual(['Ann', 'Hannah'])
  expect(found(all, (e) => e, '')).toBe(all)
})

test.each([[0, 0, 0], [0, 5, 0], [100, 1, 0], [101, 1, 1], [10_000, 99, 99], [250, 7, 2]])('of %d entries, page %d is %d', (entries, page, is) => expect(pageIn(entries, page)).toBe(is))
