import { expect, test } from 'vitest'
import { curvesFigure, mapFigure, wrapped, type Curve } from './figure'

const curve: Curve = { label: 'Rg', colour: '#0072b2', line: true, points: false, x: [1, 10, 100], y: [2, null, 4] }
const x = { title: 'Separation', low: 1, high: 100, log: true }
const y = { title: 'Distance (nm)', low: 0, high: 4 }

test('curves have axes with titles, and a caption', () => {
  const { svg } = curvesFigure(x, y, undefined, [curve], 'Distances <by> separation. hst5, cg-idp 1.')
  for (const part of ['>Separation</text>', '>Distance (nm)</text>', '>10</text>', 'Distances &#60;by&#62; separation.', '<path d="M72 176L620 16" fill="none"']) expect(svg).toContain(part)
  expect(svg).not.toContain('fill-opacity') // no errors are known
})

test('a band goes along the upper bound and back along the lower', () => {
  const { svg } = curvesFigure(x, y, undefined, [{ ...curve, low: [1, null, 3], high: [3, null, 4] }], '')
  expect(svg).toContain('<path d="M72 96L620 16L620 96L72 256Z" fill="#0072b2" fill-opacity="0.2"/>')
})

test('fits are lines and data are points', () => {
  const { svg } = curvesFigure(x, y, undefined, [{ ...curve, line: false, points: true }, { ...curve, label: 'Power law' }], '')
  expect(svg.match(/<circle/g)).toHaveLength(3) // two, and one in the key
  expect(svg.match(/<path d="M/g)).toHaveLength(1)
})

test('a map has titles of axes and bar', () => {
  const side = { title: 'Residue', count: 24, at: [9, 19], name: (i: number) => String(i + 19) }
  const { svg } = mapFigure(side, side, { title: 'Distance (nm)', low: 0, high: 3, colours: ['#000000', '#ffffff'] }, 'data:,', 'Distances.')
  for (const part of ['>28</text>', '>38</text>', '>Distance (nm)</text>', '>Distances.</text>']) expect(svg).toContain(part)
  expect(svg.match(/>Residue<\/text>/g)).toHaveLength(2)
})

test('captions are wrapped between words', () => expect(wrapped('aaa bbb ccc', 60)).toEqual(['aaa bbb', 'ccc']))
