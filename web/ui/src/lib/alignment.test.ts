import { expect, test } from 'vitest'
import { conservations, parseAlignment, residueNumber } from './alignment'

const tests: [name: string, text: string, names: string[], rows: string[]][] = [
  ['FASTA', '>a first\nMK-\nV\n>b\nMKLV\n', ['a', 'b'], ['MK-V', 'MKLV']],
  ['equal names', '>a\nMK\n>a\nML\n', ['a', 'a'], ['MK', 'ML']],
  ['A3M', '>q\nMKV\n>b\nMkk-V\n', ['q', 'b'], ['MKV', 'M-V']],
  ['Clustal', 'CLUSTAL O(1.2.4) multiple sequence alignment\n\na   MK- 2\nb   MKL 3\n    **\n\na   VV 4\nb   VI 5\n', ['a', 'b'], ['MK-VV', 'MKLVI']],
  ['Stockholm', '# STOCKHOLM 1.0\n#=GF ID x\na/1-3  MK.\nb      MKL\n#=GC RF xxx\n\na/1-3 V\nb V\n//\n', ['a/1-3', 'b'], ['MK.V', 'MKLV']],
  ['PHYLIP in blocks', ' 2 6\nalpha MKV\nbeta  MKI\n\nLLL\nLLA\n', ['alpha', 'beta'], ['MKVLLL', 'MKILLA']],
  ['PHYLIP one after the other', '2 6\nalpha MKVL\nLL\nbeta  MKI\nLLA\n', ['alpha', 'beta'], ['MKVLLL', 'MKILLA']],
  ['PHYLIP, ten letters', '2 4\nabcdefghijMKVL\nbcdefghijkMKVI\n', ['abcdefghij', 'bcdefghijk'], ['MKVL', 'MKVI']],
  ['Windows', '>a\r\nMK\r\n>b\r\nML\r\n', ['a', 'b'], ['MK', 'ML']],
]
test.each(tests)('%s', (_, text, names, rows) => {
  const a = parseAlignment(text)
  expect(a.names).toEqual(names)
  expect(a.rows).toEqual(rows)
  expect(a.columns).toBe(rows[0]!.length)
})

test('a file without sequences is reported', () => expect(() => parseAlignment('')).toThrow('The file has no sequences.'))

test('bases are distinguished from amino acids', () => {
  expect(parseAlignment('>a\nACGU-N\n').nucleic).toBe(true)
  expect(parseAlignment('>a\nMKVLAC\n').nucleic).toBe(false)
})

test('conservation counts gaps against a column', () => {
  expect([...conservations(parseAlignment('>a\nMK\n>b\nmL\n>c\n-K\n>d\nMI\n'))]).toEqual([0.75, 0.5])
})

test('residues are numbered without gaps', () => {
  expect(residueNumber('M--KV', 3)).toBe(2)
  expect(residueNumber('M--KV', 1)).toBeUndefined()
})

test('conservation of many columns', () => {
  const row = 'ACDE'.repeat(3000)
  const known = conservations(parseAlignment(`>a\n${row}\n>b\n${row.replaceAll('E', 'F')}\n`))
  expect([known.length, known[4095], known[4096], known[11_999]]).toEqual([12_000, 0.5, 1, 0.5])
})
