// Paging of long lists that are already loaded.

export const ofPage = 100 // entries per page

/** The entries whose words contain a text, ignoring case. */
export function found<T>(all: readonly T[], words: (entry: T) => string, text: string): readonly T[] {
  const wanted = text.trim().toLowerCase()
  return wanted === '' ? all : all.filter((e) => words(e).toLowerCase().includes(wanted))
}

/** The nearest existing page, since the list can become shorter. */
export const pageIn = (entries: number, page: number) => Math.max(0, Math.min(page, Math.ceil(entries / ofPage) - 1))
