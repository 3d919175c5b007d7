// Tables as CSV, for spreadsheets.

/** A cell. Text that a spreadsheet would interpret as a formula gets an apostrophe in front. */
function cell(v: unknown): string {
  if (v === null || v === undefined) return ''
  if (typeof v === 'number' || typeof v === 'boolean') return String(v)
  let text = typeof v === 'string' ? v : JSON.stringify(v)
  if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = "'" + text
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function csv(header: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [header, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n'
}

/** Downloads content as a file. */
export function offer(name: string, content: string | Blob, type = 'text/csv') {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** A file name made from a name that users chose. */
export const fileName = (text: string, ending: string) => text.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, 100) + ending
