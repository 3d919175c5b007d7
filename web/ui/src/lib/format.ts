// Numbers, sizes and times in readable form. Times are in the time zone of this browser, which
// is shown.

export * from './time'

const KiB = 1024

/** 1536 → "1.5 KiB". */
export function bytes(n: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let i = 0
  while (n >= KiB && i < units.length - 1) {
    n /= KiB
    i++
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${i === 0 && n === 1 ? 'byte' : units[i]}`
}

/** A number with this many digits after the point; by default integers in full, others with about five significant digits. */
export function number(n: number, digits?: number): string {
  if (!Number.isFinite(n)) return ''
  if (digits !== undefined) return grouped(n.toFixed(digits))
  const size = Math.abs(n)
  if (Number.isInteger(n) && size < 1e15) return grouped(n.toFixed())
  return size >= 1e6 || size < 1e-3 ? minus(n.toExponential(3)) : grouped(Number(n.toPrecision(5)).toString())
}

const minus = (text: string) => text.replace(/^-/, '−')

/** Adds thousands separators to numbers of five or more digits; 0 has no sign. */
const grouped = (text: string) => minus(text.replace(/^-(?=[0.]*$)/, '').replace(/^-?\d{5,}/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ',')))

/** A value of a setting in one line. */
export function value(v: unknown): string {
  if (v === null || v === undefined) return ''
  if (typeof v === 'number') return number(v)
  if (typeof v === 'boolean') return v ? 'yes' : 'no'
  if (typeof v === 'string') return v
  if (Array.isArray(v) && v.every((x) => typeof x !== 'object')) return v.map(value).join(', ')
  return JSON.stringify(v)
}
