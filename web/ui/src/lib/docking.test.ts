import { expect, test } from 'vitest'
import type { Algorithm } from './api'
import { boxTyped, cube, dockingOf } from './docking'

const parameters = [
  { name: 'receptor', file: ['.pdb'], content: 'protein-structure', schema: { type: 'string' } },
  { name: 'center', schema: { type: 'array', items: { type: 'number' }, minItems: 3, maxItems: 3 } },
  { name: 'size', default: 20, schema: { type: 'number', minimum: 5, maximum: 60 } },
]
const d = dockingOf({ parameters } as unknown as Algorithm)!

test('a docking has a structure, a centre and a size', () => {
  expect(d.center.name).toBe('center')
  expect(dockingOf({ parameters: parameters.slice(1) } as unknown as Algorithm)).toBeUndefined()
})

test('a box is what is typed', () => {
  expect(cube(d, { center: '1 2.5 -3' })).toEqual({ center: [1, 2.5, -3], size: [20, 20, 20] })
  expect(cube(d, { center: '1, 2, 3', size: '12' })?.size).toEqual([12, 12, 12])
  for (const center of ['', '1 2', 'a b c']) expect(cube(d, { center })).toBeUndefined()
})

test('a moved box changes its centre, a side the edge', () => {
  const old = cube(d, { center: '0 0 0' })!
  expect(boxTyped(d, old, { ...old, center: [1.234, 0, 0] })).toEqual({ center: '1.23 0 0' })
  expect(boxTyped(d, old, { ...old, size: [20, 12, 20] })).toEqual({ center: '0 0 0', size: '12' })
  expect(boxTyped(d, undefined, { center: [0, 0, 0], size: [20, 90, 30] }).size).toBe('60')
})
