import { expect, test } from 'vitest'
import type { Algorithm, Parameter } from './api'
import { doubled, faultsOf, kindOf, rowsOf, settingsOf, typedOf, uneven, valueOf } from './form'

const p = (name: string, schema: unknown, more: Partial<Parameter> = {}) => ({ name, title: name, type: 'string', required: false, advanced: false, schema, ...more }) as Parameter
const steps = p('steps', { type: 'integer', minimum: 1 })
const name = p('name', { type: 'string' })
const file = p('file', { type: 'string' }, { file: ['.pdb'] })
const files = p('files', { type: 'array', items: { type: 'string' } }, { file: ['.pdb'] })
const center = p('center', { type: 'array', items: { type: 'number' }, minItems: 3, maxItems: 3 })
const names = p('names', { type: 'array', items: { type: 'string' } })
const sequences = p('sequences', { type: ['array', 'string'], items: { type: 'string' } })
const level = p('level', { type: 'integer', enum: [1, 2] })
const flag = p('flag', { type: 'boolean' })
const odd = p('odd', { type: 'object' })
const of = (...parameters: Parameter[]) => ({ type: 'x', parameters }) as unknown as Algorithm

test('each schema has its field', () => {
  expect([steps, name, file, files, center, names, sequences, level, flag, odd].map(kindOf)).toEqual(['number', 'text', 'file', 'files', 'vector', 'list', 'sequences', 'choice', 'flag', 'json'])
  expect(kindOf(p('any', true))).toBe('json')
})

test('what is typed becomes a value of its kind, and back', () => {
  const cases: [Parameter, string, unknown][] = [
    [steps, '1e3', 1000], [steps, '−5', -5], [steps, '', undefined], [steps, '1,5', 1.5], [steps, '0,125', 0.125], [name, ' a ', ' a '], [files, 'a/b.pdb\n\nc/d.pdb', ['a/b.pdb', 'c/d.pdb']],
    [center, '1.5, 2 -3', [1.5, 2, -3]], [names, 'a\nb', ['a', 'b']], [sequences, 'MK\nGG', ['MK', 'GG']], [sequences, '>a\nMK', '>a\nMK'], [level, '2', 2], [flag, 'false', false], [odd, '{"a":1}', { a: 1 }],
  ]
  for (const [parameter, typed, value] of cases) {
    expect(valueOf(parameter, typed)).toEqual(value)
    expect(valueOf(parameter, typedOf(parameter, value))).toEqual(value)
  }
})

test('an invalid value is an error of its field', () => {
  const { settings, faults } = settingsOf(of(steps, odd, name), { steps: '12 apples', odd: '{', name: 'a' })
  expect(settings).toEqual({ name: 'a' })
  expect(faults.steps).toBe('“12 apples” is not a number.')
  expect(faults.odd).toContain('not valid JSON')
  expect(() => valueOf(steps, '1,000')).toThrow('ambiguous')
})

test('many values make many jobs, paired or in every combination', () => {
  const a = of(steps, name)
  const many = { steps: '1\n2\n', name: 'a\nb' }
  expect(rowsOf(a, {}, many, false)).toEqual([{ steps: '1', name: 'a' }, { steps: '2', name: 'b' }])
  expect(rowsOf(a, {}, many, true)).toHaveLength(4)
  const values = (text: string) => rowsOf(a, {}, { steps: text }, false).map((r) => r.steps)
  expect(['1, 2,3;4', '1\t2\n3', '280:320:10', '0.1:0.3:0.1', '3:1:-1', '1,2,3', '0,5; 0,7', '1,5, 2,5', '1:2', 'a:b:c', '1:2:0', '280,293,310', '1 000', '1,000, 2'].map((t) => values(t).join('|'))).toEqual([
    '1|2,3|4', '1|2|3', '280|290|300|310|320', '0.1|0.2|0.3', '3|2|1', '1|2|3', '0,5|0,7', '1,5|2,5', '1:2', 'a:b:c', '1:2:0', '280,293,310', '1 000', '1,000|2',
  ])
  expect(rowsOf(a, { name: 'c' }, { steps: '1\n2\n3' }, false).map((r) => r.name)).toEqual(['c', 'c', 'c'])
  expect(uneven(a, many)).toBe('')
  expect(uneven(a, { steps: '1\n2\n3', name: 'a\nb' })).toContain('steps 3, name 2')
})

test('settings typed in addition to a table column', () => {
  const fault = (...loc: (string | number)[]) => ({ loc: ['body', ...loc], msg: 'm', type: 't' })
  const detail = [fault('fanOut', 'each', '*', 1, 'steps'), fault('fanOut', 'each', '*', 1, 'colour'), fault('fanOut', 'each', '*', 3, 'name'), fault('settings', 'name')]
  expect(doubled(detail, { steps: '5', name: 'a' })).toEqual(['steps'])
})

test('server errors are assigned to their fields', () => {
  const fault = (loc: (string | number)[]) => ({ loc, msg: 'm', type: 't' })
  expect(faultsOf([fault(['body', 'settings', 'steps']), fault(['body', 'settings', 1, 'name']), fault(['body', 'jobName']), fault(['body', 'tags', 'a']), fault(['body'])])).toEqual({
    steps: ['m'], name: ['row 2: m'], '@name': ['m'], '@tags': ['m'], '': ['m'],
  })
})
