import { expect, test } from 'vitest'
import { nearest, place, roomy } from './scatter'

test('rows without a metric are left out', () => {
  expect(place([{ id: '1', name: 'a', values: { x: 1, y: 2 } }, { id: '2', name: 'b', values: { x: null, y: 2 } }, { id: '3', name: 'c', values: { x: 1 } }], 'x', 'y')).toEqual([{ id: '1', name: 'a', x: 1, y: 2 }])
})

test('one value still has a range', () => expect(roomy(0, 0)).toEqual([-0.05, 0.05]))

test('the nearest point', () => {
  const points = [{ id: '1', name: '', x: 0, y: 0 }, { id: '2', name: '', x: 5, y: 0 }]
  expect(nearest(points, (p) => [p.x, p.y], 4, 0, 3)?.id).toBe('2')
  expect(nearest(points, (p) => [p.x, p.y], 20, 0, 3)).toBeUndefined()
})
