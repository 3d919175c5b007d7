import { expect, test } from 'vitest'
import type { Parameter } from './api'
import { figureLines, settingLines, type Compared } from './compare'

const parameters = [
  { name: 'steps', title: 'Steps' },
  { name: 'T', title: 'Temperature', unit: 'K', default: 293 },
  { name: 'pH', title: 'pH', default: 7 },
] as unknown as Parameter[]
const metrics: Compared['metrics'] = [{ name: 'n', title: 'Chains' }, { name: 'e', title: 'Energy', unit: 'kJ/mol', better: 'lower', digits: 1, rank: true }]
const job = (settings: Record<string, unknown>, results: Record<string, unknown> = {}): Compared => ({ job: { settings, metrics: { results } } as unknown as Compared['job'], parameters, metrics })

test('settings that differ come first, with titles, units and defaults', () => {
  const lines = settingLines([job({ steps: 10, T: 300, odd: [1, 2] }), job({ steps: 10 }), job({ steps: 10, T: 293, odd: [1, 2] })])
  expect(lines.map((l) => [l.title, l.differs, l.cells.map((c) => c.text + (c.standard ? '*' : ''))])).toEqual([
    ['Temperature (K)', true, ['300', '293*', '293']],
    ['odd', true, ['1, 2', '*', '1, 2']],
    ['Steps', false, ['10', '10', '10']],
  ])
})

test('files of one name are distinguished by their digests', () => {
  const of = (digit: string, name: string) => job({ file: `sha256:${digit.repeat(64)}/${name}` })
  expect(settingLines([of('a', 'x.pdb'), of('b', 'y.pdb')])[0]).toMatchObject({ differs: true, cells: [{ text: 'x.pdb' }, { text: 'y.pdb' }] })
  expect(settingLines([of('a', 'x.pdb'), of('a', 'x.pdb')])[0]).toMatchObject({ differs: false, cells: [{ text: 'x.pdb' }, { text: 'x.pdb' }] })
  const [same] = settingLines([of('a', 'x.pdb'), of('b', 'x.pdb')])
  expect([same!.differs, same!.cells[0]!.text]).toEqual([true, 'x.pdb (aaaaaaaaaaaa…)'])
})

test('long values are cut, but still distinguish jobs', () => {
  const [line] = settingLines([job({ steps: 'A'.repeat(400) + 'B' }), job({ steps: 'A'.repeat(401) })])
  expect([line!.differs, line!.cells[0]!.text.length]).toEqual([true, 301])
})

test('no value is best within the errors, which are shown with their values', () => {
  const of = (e: number, se: number): Compared => ({ ...job({}, { e, se }), metrics: [{ name: 'e', better: 'lower' }, { name: 'se', errorOf: 'e' }] })
  const cells = (...jobs: Compared[]) => figureLines(jobs).map((l) => l.cells.map((c) => c.text + (c.best ? '*' : '')).join(' | '))
  expect(cells(of(1, 0.1), of(1.28, 0.1))).toEqual(['1.00 ± 0.10 | 1.28 ± 0.10'])
  expect(cells(of(1, 0.1), of(1.29, 0.1))).toEqual(['1.00 ± 0.10* | 1.29 ± 0.10'])
})

test('no value is best if jobs differ in settings that a metric depends on, or in their algorithms', () => {
  const of = (better: 'lower' | undefined, same: string[], settings: Record<string, unknown>, e: number): Compared => ({ ...job(settings, { e }), metrics: [{ name: 'e', better, same }] })
  const best = (...jobs: Compared[]) => figureLines(jobs)[0]!.cells.some((c) => c.best)
  expect(best(of('lower', ['T'], { steps: 1 }, 1), of('lower', ['T'], { T: 293 }, 2))).toBe(true)
  expect(best(of('lower', ['T'], { T: 300 }, 1), of('lower', ['T'], {}, 2))).toBe(false)
  expect(best(of('lower', [], {}, 1), of(undefined, [], {}, 2))).toBe(false)
})

test('metrics have the digits of their algorithm, and the best is marked', () => {
  const lines = figureLines([job({}, { n: 1, e: -10.26, list: [1] }), job({}, { n: 1, e: -9, note: 'x' }), job({}, { e: null })])
  expect(lines.map((l) => [l.title, l.cells.map((c) => c.text + (c.best ? '!' : ''))])).toEqual([
    ['Energy (kJ/mol)', ['−10.3!', '−9.0', '']],
    ['Chains', ['1', '1', '']],
    ['note', ['', 'x', '']],
  ])
})
