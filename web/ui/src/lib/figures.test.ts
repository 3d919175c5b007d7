import { expect, test } from 'vitest'
import cases from '../../../../app/client/python/tests/figures.json'
import { figures, main, measured, type Metric } from './figures'

test.each(cases as { value: number; error?: number; digits?: number; text: string }[])('$text', ({ value, error, digits, text }) => {
  expect(measured(value, error, digits).replaceAll('−', '-')).toBe(text)
})

test('metrics are in the order of the algorithm, with errors, units and meanings', () => {
  const metrics: Metric[] = [
    { name: 'tm', title: 'TM-score', digits: 2, rank: true, reading: [{ words: 'another fold' }, { from: 0.5, words: 'same fold' }] },
    { name: 'rg', title: 'Radius', unit: 'nm' },
    { name: 'rg_se', title: 'Error of the radius', unit: 'nm', errorOf: 'rg' },
    { name: 'nu_se', title: 'Error of nu', errorOf: 'nu' },
    { name: 'speed', title: 'Speed', unit: 'steps/s', group: 'Run' },
    { name: 'gone' },
  ]
  const all = figures({ other: [1], why: 'a text that is too long for a main figure', speed: 211527, rg_se: 0.0143, rg: 1.3244, tm: 0.5, nu: null, nu_se: 0.1 }, metrics)
  expect(all.map((f) => [f.title, f.text, f.unit, f.reading].join('|'))).toEqual([
    'TM-score|0.50||same fold', 'Radius|1.324 ± 0.014|nm|', 'Error of nu|0.1||', 'Speed|211,527|steps/s|', 'why|a text that is too long for a main figure||', 'nu|unknown||',
  ])
  expect(figures({ tm: 0.49 }, metrics)[0]!.reading).toBe('another fold')
  expect(main(all).map((f) => f.name)).toEqual(['tm', 'rg', 'nu_se', 'nu'])
})
