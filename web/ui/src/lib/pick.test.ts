import { expect, test } from 'vitest'
import { Picks } from './pick'

const picks = new Picks(['poses/aspirin.sdf', 'poses/caffeine.sdf', 'a/model.pdb', 'b/model.pdb'])

test('a cell names a file by path, name or stem', () => {
  expect(picks.of([1, 'poses/aspirin.sdf'])).toBe('poses/aspirin.sdf')
  expect(picks.of(['caffeine.sdf'])).toBe('poses/caffeine.sdf')
  expect(picks.of([null, -7.2, 'caffeine'])).toBe('poses/caffeine.sdf')
  expect(picks.of(['./a/model.pdb'])).toBe('a/model.pdb')
})

test('a name of several files, or of none, picks nothing', () => {
  expect(picks.of(['model'])).toBeUndefined()
  expect(picks.of(['model.pdb', 'ibuprofen', ''])).toBeUndefined()
  expect(picks.of(['__proto__'])).toBeUndefined()
})
