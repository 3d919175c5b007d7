// Long lists that came as a whole, shown in parts.

export const ofPage = 100 // entries that are shown at once

/** The entries whose words contain a text, small letters or not. */
export function found<T>(all: readonly T[], words: (entry: T) => string, text: string): readonly T[] {
  const wanted = text.trim().toLowerCase()
  return wanted === '' ? all : all.filter((e) => words(e).toLowerCase().includes(wanted))
}

/** A page that there is, also when the list has become shorter. */
export const pageIn = (entries: number, page: number) => Math.max(0, Math.min(page, Math.ceil(entries / ofPage) - 1))
