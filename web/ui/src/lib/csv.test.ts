import { expect, test } from 'vitest'
import { csv } from './csv'

test('cells with commas, quotes and lines are quoted', () => {
  expect(csv(['a', 'b'], [['1,2', 'say "x"'], ['two\nlines', '']])).toBe('a,b\r\n"1,2","say ""x"""\r\n"two\nlines",\r\n')
})

test('formulas are defused', () => {
  expect(csv(['a'], [['=cmd()'], [-5], ['-5']])).toBe("a\r\n'=cmd()\r\n-5\r\n-5\r\n")
})
