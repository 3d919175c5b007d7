// Figures for publication: SVG of curves and maps, 170 mm wide, with a caption.
import { number } from './format'
import { logTicks, ticks } from './ticks'

export interface Axis { title: string; low: number; high: number; log?: boolean; label?: (v: number) => string; at?: readonly number[] }
type Values = ArrayLike<number | null | undefined>
/** low and high bound the error band. */
export interface Curve { label: string; colour: string; right?: boolean; dash?: readonly number[]; line: boolean; points: boolean; x: readonly number[]; y: Values; low?: Values; high?: Values }
export interface Drawing { svg: string; width: number; height: number }

const wide = 640
const ink = '#1b2430'
const faint = '#d8dee6'
const size = 12 // of text
const line = 16

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
const round = (v: number) => String(Number(v.toFixed(2)))
/** Approximate width of a text. */
const widthOf = (text: string) => text.length * size * 0.56

interface Placing { anchor?: 'start' | 'middle' | 'end'; turned?: boolean }
function text(x: number, y: number, content: string, { anchor = 'start', turned }: Placing = {}): string {
  const at = turned ? `transform="translate(${round(x)} ${round(y)}) rotate(-90)"` : `x="${round(x)}" y="${round(y)}"`
  return `<text ${at} text-anchor="${anchor}">${escaped(content)}</text>`
}
const stroke = (x0: number, y0: number, x1: number, y1: number, colour: string, more = '') => `<line x1="${round(x0)}" y1="${round(y0)}" x2="${round(x1)}" y2="${round(y1)}" stroke="${colour}"${more}/>`

/** Wraps text to a width. */
export function wrapped(content: string, width: number): string[] {
  const lines = ['']
  for (const word of content.split(' ')) {
    const last = lines.at(-1)!
    if (last !== '' && widthOf(`${last} ${word}`) > width) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines
}

/** The whole figure: the drawing, and the caption below it. */
function sheet(height: number, caption: string, body: string): Drawing {
  const lines = wrapped(caption, wide - 32)
  const whole = height + lines.length * line + 12
  const words = lines.map((l, i) => text(16, height + (i + 1) * line, l)).join('')
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${wide}" height="${whole}" viewBox="0 0 ${wide} ${whole}" font-family="Helvetica, Arial, sans-serif" font-size="${size}" fill="${ink}"><rect width="${wide}" height="${whole}" fill="#ffffff"/>${body}${words}</svg>\n`
  return { svg, width: wide, height: whole }
}

/** Maps values of an axis to positions between from and to. */
function along(a: Axis, from: number, to: number): (v: number) => number {
  const f = a.log ? Math.log10 : (v: number) => v
  const [low, high] = [f(a.low), f(a.high)]
  return (v) => from + ((f(v) - low) / (high - low || 1)) * (to - from)
}
const ticksOf = (a: Axis, n: number) => (a.at ? a.at.filter((v) => v >= a.low && v <= a.high) : a.log ? logTicks(a.low, a.high) : ticks(a.low, a.high, n))
const labelOf = (a: Axis, v: number) => a.label?.(v) ?? number(v)

/** Curves over an x axis, with one or two y axes and a legend. */
export function curvesFigure(x: Axis, left: Axis, right: Axis | undefined, curves: readonly Curve[], caption: string): Drawing {
  const box = { left: 72, right: right ? wide - 72 : wide - 20, top: 16, bottom: 0 }
  let key = ''
  let at = box.left
  let row = 12
  if (curves.length > 1) {
    for (const c of curves) {
      const width = widthOf(c.label) + 44
      if (at > box.left && at + width > box.right) [at, row] = [box.left, row + line]
      key += sample(c, at, row + 4) + text(at + 28, row + 8, c.label)
      at += width
    }
    box.top = row + 22
  }
  box.bottom = box.top + 320
  const toX = along(x, box.left, box.right)
  const scale = (a: Axis) => along(a, box.bottom, box.top)
  let frame = ''
  for (const v of ticksOf(x, 7)) frame += stroke(toX(v), box.bottom, toX(v), box.bottom + 5, ink) + text(toX(v), box.bottom + 18, labelOf(x, v), { anchor: 'middle' })
  frame += text((box.left + box.right) / 2, box.bottom + 36, x.title, { anchor: 'middle' })
  const toLeft = scale(left)
  for (const v of ticksOf(left, 5)) frame += stroke(box.left, toLeft(v), box.right, toLeft(v), faint) + stroke(box.left - 5, toLeft(v), box.left, toLeft(v), ink) + text(box.left - 8, toLeft(v) + 4, labelOf(left, v), { anchor: 'end' })
  frame += text(16, (box.top + box.bottom) / 2, left.title, { anchor: 'middle', turned: true })
  if (right) {
    const toRight = scale(right)
    for (const v of ticksOf(right, 5)) frame += stroke(box.right, toRight(v), box.right + 5, toRight(v), ink) + text(box.right + 8, toRight(v) + 4, labelOf(right, v))
    frame += text(wide - 8, (box.top + box.bottom) / 2, right.title, { anchor: 'middle', turned: true })
  }
  const drawn = curves.map((c) => curve(c, toX, scale(c.right && right ? right : left))).join('')
  const border = `<rect x="${box.left}" y="${box.top}" width="${box.right - box.left}" height="${box.bottom - box.top}" fill="none" stroke="${ink}"/>`
  const clip = `<clipPath id="box"><rect x="${box.left}" y="${box.top}" width="${box.right - box.left}" height="${box.bottom - box.top}"/></clipPath>`
  return sheet(box.bottom + 48, caption, `<defs>${clip}</defs>${key}${frame}<g clip-path="url(#box)">${drawn}</g>${border}`)
}

const dashed = (c: Curve) => (c.dash ? ` stroke-dasharray="${c.dash.join(' ')}"` : '')

function sample(c: Curve, x: number, y: number): string {
  return (c.line ? stroke(x, y, x + 22, y, c.colour, ` stroke-width="1.5"${dashed(c)}`) : '') + (c.points ? `<circle cx="${round(x + 11)}" cy="${round(y)}" r="2.5" fill="${c.colour}"/>` : '')
}

function curve(c: Curve, toX: (v: number) => number, toY: (v: number) => number): string {
  const places = (values: Values) => c.x.flatMap((x, i): [number, number][] => {
    const v = values[i]
    if (v === null || v === undefined) return []
    const at: [number, number] = [toX(x), toY(v)]
    return at.every(Number.isFinite) ? [at] : []
  })
  const path = (all: [number, number][]) => all.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`).join('')
  const at = places(c.y)
  const band = c.low && c.high ? `<path d="${path([...places(c.high), ...places(c.low).reverse()])}Z" fill="${c.colour}" fill-opacity="0.2"/>` : ''
  return band + (c.line ? `<path d="${path(at)}" fill="none" stroke="${c.colour}" stroke-width="1.5"${dashed(c)}/>` : '') + (c.points ? at.map(([x, y]) => `<circle cx="${round(x)}" cy="${round(y)}" r="2.5" fill="${c.colour}"/>`).join('') : '')
}

/** The labels of a map axis: names at some of its cells. */
export interface Side { title: string; at: readonly number[]; name: (i: number) => string; count: number }
export interface Bar { title: string; low: number; high: number; colours: readonly string[] }
/** The position of the cells of a map. */
export interface Place { left: number; top: number; width: number; height: number }

/** The axes around the cells of a map, and the total height. The text has the color of the page. */
export function mapFrame(width: number, rows: Side, cols: Side, bar: Bar): { body: string; place: Place; height: number } {
  const longest = (s: Side) => Math.max(0, ...s.at.map((i) => widthOf(shortened(s.name(i)))))
  const left = Math.ceil(longest(rows)) + (rows.title ? 34 : 14)
  const across = Math.max(40, width - left - 12)
  const place = { left, top: 8, width: across, height: Math.max(40, Math.min(across, Math.round((across * rows.count) / Math.max(1, cols.count)))) }
  const [right, bottom] = [place.left + place.width, place.top + place.height]
  const middle = place.left + place.width / 2
  let body = `<rect x="${place.left - 0.5}" y="${place.top - 0.5}" width="${place.width + 1}" height="${place.height + 1}" fill="none" stroke="currentColor"/>`
  for (const i of rows.at) {
    const y = place.top + ((i + 0.5) / rows.count) * place.height
    body += stroke(left - 5, y, left, y, 'currentColor') + text(left - 8, y + 4, shortened(rows.name(i)), { anchor: 'end' })
  }
  let free = -Infinity
  for (const i of cols.at) {
    const x = place.left + ((i + 0.5) / cols.count) * place.width
    body += stroke(x, bottom, x, bottom + 5, 'currentColor')
    const label = shortened(cols.name(i))
    if (x - widthOf(label) / 2 < free) continue
    free = x + widthOf(label) / 2 + 6
    body += text(x, bottom + 18, label, { anchor: 'middle' })
  }
  if (cols.title) body += text(middle, bottom + 36, cols.title, { anchor: 'middle' })
  if (rows.title) body += text(12, place.top + place.height / 2, rows.title, { anchor: 'middle', turned: true })
  const top = bottom + (cols.title ? 48 : 30)
  const cell = place.width / bar.colours.length
  bar.colours.forEach((c, i) => (body += `<rect x="${round(place.left + i * cell)}" y="${top}" width="${round(cell + 0.5)}" height="12" fill="${c}"/>`))
  const toX = along({ title: '', low: bar.low, high: bar.high }, place.left, right)
  for (const v of ticks(bar.low, bar.high, 4)) body += stroke(toX(v), top + 12, toX(v), top + 16, 'currentColor') + text(toX(v), top + 29, number(v), { anchor: 'middle' })
  body += text(middle, top + 46, bar.title, { anchor: 'middle' })
  return { body, place, height: top + 54 }
}

const shortened = (name: string) => (name.length > 14 ? name.slice(0, 13) + '…' : name)

/** A map; picture is the URL of its cells as an image. */
export function mapFigure(rows: Side, cols: Side, bar: Bar, picture: string, caption: string): Drawing {
  const width = Math.min(wide, 480)
  const { body, place, height } = mapFrame(width, rows, cols, bar)
  const image = `<image x="${place.left}" y="${place.top}" width="${place.width}" height="${place.height}" preserveAspectRatio="none" image-rendering="pixelated" xlink:href="${escaped(picture)}"/>`
  return sheet(height, caption, `<g transform="translate(${(wide - width) / 2} 0)" color="${ink}">${image}${body}</g>`)
}
