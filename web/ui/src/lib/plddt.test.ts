import { expect, test } from 'vitest'
import { bandsOf, percentOf } from './plddt'

test('bands are those of the view', () => {
  expect(bandsOf({ bands: [50, 70, 90] }).map((b) => `${b.range} ${b.name}`)).toEqual(['> 90 very high', '70–90 high', '50–70 low', '< 50 very low'])
})

test('values are from 0 to 100', () => {
  for (const [scale, highest, value, shown] of [[1, 0.91, 0.91, 91], [100, 0.91, 0.91, 0.91], [undefined, 0.91, 0.91, 91], [undefined, 91, 91, 91], [undefined, 1, 0.5, 50]] as const)
    expect(value * percentOf({ bands: [50, 70, 90], ...(scale && { scale }) }, highest)).toBe(shown)
})
