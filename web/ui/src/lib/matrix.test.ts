import { expect, test } from 'vitest'
import { apart, colours, extent, paint, parseMatrix } from './matrix'

const tests: [name: string, text: string, rows: number, cols: number, values: number[]][] = [
  ['commas', '1,2\n3,4\n', 2, 2, [1, 2, 3, 4]],
  ['tabs and Windows', '1\t2\r\n3\t4\r\n', 2, 2, [1, 2, 3, 4]],
  ['blanks and a comment', '# nm\n 1  2.5 \n 3 4', 2, 2, [1, 2.5, 3, 4]],
  ['header and row names', 'res,A1,A2\nA1,1,2\nA2,3,4', 2, 2, [1, 2, 3, 4]],
  ['header only', 'a;b\n1;2\n3;4', 2, 2, [1, 2, 3, 4]],
  ['gaps', '1,,3\n4,5', 2, 3, [1, NaN, 3, 4, 5, NaN]],
  ['rows of JSON', '[[1,2],[3,4]]', 2, 2, [1, 2, 3, 4]],
  ['AlphaFold 2', '[{"predicted_aligned_error":[[0,5],[6,0]],"max_predicted_aligned_error":31.75}]', 2, 2, [0, 5, 6, 0]],
  ['AlphaFold 3', '{"atom_plddts":[1],"pae":[[0,5],[6,0]]}', 2, 2, [0, 5, 6, 0]],
  ['triples', '[{"residue1":[1,1,2,2],"residue2":[1,2,1,2],"distance":[0,5,6,0]}]', 2, 2, [0, 5, 6, 0]],
]
test.each(tests)('%s', (_, text, rows, cols, values) => {
  const m = parseMatrix(text)
  expect([m.rows, m.cols]).toEqual([rows, cols])
  expect([...m.values]).toEqual(values)
})

test('a file names its rows and columns', () => {
  const m = parseMatrix('res,A1,A2\nB1,1,2\nB2,3,4')
  expect([m.rowNames, m.colNames]).toEqual([['B1', 'B2'], ['A1', 'A2']])
  expect(parseMatrix('1,2\n3,4').rowNames).toBeUndefined()
})

test('pairs too close along the chain have no value', () => {
  const m = parseMatrix('1,2,3\n4,5,6\n7,8,9')
  expect([...apart(m, 2).values]).toEqual([NaN, NaN, 3, NaN, NaN, NaN, 7, NaN, NaN])
  expect(apart(m, 0)).toBe(m)
})

test('a file without a matrix is reported', () => {
  expect(() => parseMatrix('{"a":1}')).toThrow('The file has no matrix.')
  expect(() => parseMatrix('')).toThrow('The matrix is empty.')
})

test('many cells in few pixels are their mean', () => {
  const m = parseMatrix('0,2\n4,6')
  const pixels = new Uint32Array(1)
  const palette = Uint32Array.from({ length: 256 }, (_, i) => i)
  paint(pixels, 1, 1, m, [0, 6], palette)
  expect(pixels[0]).toBe(128)
  expect(extent(m.values)).toEqual([0, 6])
  expect(colours().length).toBe(256)
})
