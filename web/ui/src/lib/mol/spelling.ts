// Rewrites files that Mol* would read differently from the service.
import { mmCIF_Schema } from 'molstar/lib/mol-io/reader/cif/schema/mmcif.js'

/** Decodes UTF-8, or UTF-16 with a byte order mark. Lines can end with a carriage return alone. */
export function decode(data: Uint8Array): string {
  const mark = ((data[0] ?? 0) << 8) | (data[1] ?? 0)
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8'
  return new TextDecoder(encoding).decode(data).replace(/\r(?!\n)/g, '\n')
}

let tags: Map<string, string> | undefined

function known(): Map<string, string> {
  const all = Object.entries(mmCIF_Schema).flatMap(([category, fields]) => Object.keys(fields).map((field) => `_${category}.${field}`))
  return new Map(all.map((tag) => [tag.toLowerCase(), tag]))
}

/** Rewrites tags, which are case-insensitive in mmCIF, to the case of the dictionary. */
export function spellCIF(text: string): string {
  const all = (tags ??= known())
  const spelled = (tag: string) => all.get(tag.toLowerCase()) ?? tag.replace(/^\w+/, (category) => category.toLowerCase())
  return text.replace(/_\w+\.\S+/g, (found, at: number) => (/\S/.test(text[at - 1] ?? ' ') ? found : spelled(found)))
}

/** Uppercases record names, removes a digit from six-digit atom numbers, and turns frames that end with END alone into models. */
export function spellPDB(text: string): string {
  const capital = text.replace(/^(?:atom [ \d]|hetatm|(?:ter|model|endmdl|end)\b)/gim, (word) => word.toUpperCase().replace(/\d/, ' '))
  const lines = capital.replace(/^((?:ATOM {2}|HETATM)\d{5})\d(?=.{23}\..{7}\..{7}\.)/gm, '$1')
  if (/^MODEL /m.test(lines)) return lines
  const frames = lines.split(/^END[ \t]*$/m).filter((frame) => /^(ATOM|HETATM)/m.test(frame))
  return frames.length > 1 ? frames.map((frame, k) => `MODEL     ${k + 1}\n${frame}\nENDMDL\n`).join('') : lines
}
