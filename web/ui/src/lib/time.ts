// Times and counts, which the first page needs; lib/format.ts has the rest.

/** 75 → "1 min 15 s"; the two largest units. */
export function duration(seconds: number): string {
  if (!(seconds >= 0)) return ''
  if (seconds < 1) return seconds === 0 ? '0 s' : '< 1 s'
  if (seconds < 10 && seconds % 1) return `${seconds.toFixed(1)} s`
  let rest = Math.round(seconds)
  const parts: string[] = []
  for (const [size, unit] of [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']] as const) {
    const n = Math.floor(rest / size)
    rest -= n * size
    if (n > 0 || parts.length > 0) parts.push(n > 0 ? `${n} ${unit}` : '')
    if (parts.length === 2) break
  }
  return parts.filter(Boolean).join(' ')
}

/** A time relative to now: "5 min ago", "in 2 h". */
export function relative(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1000
  const size = Math.abs(seconds)
  const text =
    size < 45 ? 'now' : size < 3600 ? `${Math.max(1, Math.round(size / 60))} min` : size < 86400 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86400)} d`
  if (text === 'now') return seconds < -5 ? 'in a moment' : 'just now'
  return seconds >= 0 ? `${text} ago` : `in ${text}`
}

const exact = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' })
/** A time with its time zone. */
export const moment = (time: string) => exact.format(new Date(time))

/** "1 job", "2 jobs", "10,000+ jobs". */
export function count(n: number | string, one: string, many = one + 's'): string {
  return `${String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ',')} ${n === 1 ? one : many}`
}
