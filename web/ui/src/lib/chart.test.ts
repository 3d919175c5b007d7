import { expect, test } from 'vitest'
import type { View } from './api'
import { runOf } from './chart'

const view: View = { name: 'rg', kind: 'series', title: 'Size', y: ['rg', 'fit'], errors: { rg: 'rg_se' }, fits: ['fit'], ticks: 'number', files: [] }
const columns = [{ name: 'index', title: 'Residue' }, { name: 'rg', title: 'Radius', unit: 'nm' }, { name: 'fit' }, { name: 'rg_se' }, { name: 'number' }]
const series = { name: 'rg', file: 'rg.csv', rows: 2, columns, values: [[1, 2], [3, 4], [3, 4], [0.1, 0.2], [19, 20]] }

test('errors and ticks are not lines of their own', () => {
  const run = runOf('a', series, view)
  expect(run?.xName).toBe('Residue')
  expect(run?.ticks).toEqual([19, 20])
  expect(run?.y).toEqual([
    { name: 'Radius', unit: 'nm', values: [3, 4], errors: [0.1, 0.2], fit: false },
    { name: 'fit', unit: undefined, values: [3, 4], errors: undefined, fit: true },
  ])
})

test('before there are numbers there is no run', () => expect(runOf('a', { ...series, rows: 0 }, view)).toBeUndefined())
