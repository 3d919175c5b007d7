// Tables as CSV, for spreadsheets.

/** A cell. A text that a spreadsheet would take for a formula begins with an apostrophe. */
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

/** Offers a text as a file. */
export function offer(name: string, content: string | Blob, type = 'text/csv') {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** A name for a file, of what people called something. */
export const fileName = (text: string, ending: string) => text.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, 100) + ending
