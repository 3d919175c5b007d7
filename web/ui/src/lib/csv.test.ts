import { expect, test } from 'vitest'
import { csv, parseCSV } from './csv'

test('cells with commas, quotes and lines come back', () => {
  const rows = [['a', 'b'], ['1,2', 'say "x"'], ['two\nlines', '']]
  expect(parseCSV(csv(rows[0]!, rows.slice(1)))).toEqual(rows)
})

test('formulas are defused', () => {
  expect(csv(['a'], [['=cmd()'], [-5], ['-5']])).toBe("a\r\n'=cmd()\r\n-5\r\n-5\r\n")
})

test('tabs separate cells of TSV', () => {
  expect(parseCSV('x\ty\n1\t2\n', '\t')).toEqual([['x', 'y'], ['1', '2']])
})

test('lines end as on any system', () => {
  for (const text of ['a,b\n1,2\n', 'a,b\r\n1,2\r\n', 'a,b\r1,2\r', 'a,b\r\n1,2\r']) expect(parseCSV(text)).toEqual([['a', 'b'], ['1', '2']])
})
