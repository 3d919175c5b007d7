import { expect, test, vi } from 'vitest'
import type { Run } from './chart'

vi.stubGlobal('matchMedia', () => ({ addEventListener: () => {} }))
const { plot, range, sentence, table } = await import('./plot')

const a: Run = { name: 'a', x: [0, 1, 2], y: [{ name: 'Rg', unit: 'nm', values: [1, null, 3] }], xName: 'time', xUnit: 'ps' }
const b: Run = { name: 'b', x: [1, 3], y: [{ name: 'Rg', unit: 'nm', values: [5, 6] }], xName: 'time', xUnit: 'ps' }

test('runs share an axis', () => {
  const p = plot([a, b], '#111')
  expect(p.data[0]).toEqual([0, 1, 2, 3])
  expect(p.lines.map((l) => l.label)).toEqual(['a', 'b'])
  expect(p.scales).toEqual([{ key: 'y0', label: 'Rg (nm)' }])
})

test('axes say what they show', () => {
  const line = (name: string, unit?: string) => ({ name, ...(unit && { unit }), values: [1] })
  const labels = (...y: { name: string; values: number[] }[]) => plot([{ ...a, x: [0], y }], '').scales.map((s) => s.label)
  expect(labels(line('loss'))).toEqual(['loss'])
  expect(labels(line('potential', 'kJ/mol'), line('kinetic', 'kJ/mol'), line('T', 'K'))).toEqual(['potential, kinetic (kJ/mol)', 'T (K)'])
  expect(labels(line('Radius of gyration', 'nm'), line('End-to-end distance', 'nm'))).toEqual(['nm'])
  expect(labels(line('x', 'nm'), line('y', 'nm'), line('z', 'nm'), line('E', 'kJ'), line('T', 'K'))).toEqual(['nm', 'E, T (kJ, K)'])
})

test('an unordered axis is sorted', () => {
  expect(plot([{ ...a, x: [2, 1, 0] }], '').data).toEqual([[0, 1, 2], [3, null, 1]])
})

test('errors are a band around their line', () => {
  const p = plot([{ ...a, y: [{ ...a.y[0]!, errors: [0.5, 0.5, null] }] }], '')
  expect(p.data).toEqual([[0, 1, 2], [1, null, 3], [0.5, null, null], [1.5, null, null]])
  expect(p.lines[0]).toMatchObject({ low: 2, high: 3 })
  expect(table([{ ...a, y: [{ ...a.y[0]!, errors: [0.5, 0.5, null] }] }]).header).toEqual(['time (ps)', 'Rg (nm)', 'Rg, standard error (nm)'])
})

test('with a fit, data are points', () => {
  const { lines: [data, fit], scales } = plot([{ ...a, y: [a.y[0]!, { ...a.y[0]!, name: 'fit', fit: true }] }], '')
  expect(scales[0]!.label).toBe('Rg (nm)')
  expect([data!.line, data!.points, fit!.line, fit!.points]).toEqual([false, true, true, false])
})

test('a table has all points', () => {
  const t = table([a, b])
  expect(t.header).toEqual(['time (ps)', 'a (nm)', 'b (nm)'])
  expect(t.rows).toEqual([[0, 1, null], [1, null, 5], [2, 3, null], [3, null, 6]])
})

test('a sentence says range and last value', () => {
  expect(sentence('Size', [a])).toBe('Size, time from 0 to 2 ps: Rg from 1 to 3 nm, last 3 nm.')
  expect(sentence('Size', [])).toBe('Size: .')
})

test('ranges of many values', () => expect(range(Array.from({ length: 300_000 }, (_, i) => i))).toEqual([0, 299_999]))
