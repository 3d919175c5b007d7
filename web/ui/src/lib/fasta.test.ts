import { expect, test } from 'vitest'
import { check, parse, summary } from './fasta'

test('FASTA and bare sequences', () => {
  expect(parse('>a first\nMK TA\nYI\n\n>b\nGG\n')).toEqual([{ name: 'a', sequence: 'MKTAYI', line: 1 }, { name: 'b', sequence: 'GG', line: 5 }])
  expect(parse('MKTA\r\nGG\r\n')).toEqual([{ name: '', sequence: 'MKTA', line: 1 }, { name: '', sequence: 'GG', line: 2 }])
  expect(parse('\n ; a remark\n')).toEqual([])
})

test('a letter that is not a residue is reported with its line', () => {
  expect(check('>a\nMKTA\nAC BD\n')).toEqual(['line 3 (a): “B”, letter 3, is not an amino acid'])
  expect(check('MKTA\nM😀K')).toEqual(['line 2: “😀”, letter 2, is not an amino acid'])
  expect(check('>a\n>b\nMK')).toEqual(['line 1: a has no sequence'])
  expect(check('mkta*')).toEqual([])
})

test('the number of errors is limited', () => expect(check('B\n'.repeat(1000))).toHaveLength(10))

test('a thousand sequences are fast', () => {
  const text = Array.from({ length: 1000 }, (_, i) => `>s${i}\n${'MKTAYIAKQR'.repeat(50)}`).join('\n')
  const began = performance.now()
  expect(summary(text)).toBe('1,000 sequences, 500,000 residues')
  expect(check(text)).toEqual([])
  expect(performance.now() - began).toBeLessThan(500)
})
