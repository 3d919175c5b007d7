// The search for programs, best match first, and their groups.
import type { AlgorithmSummary } from './api'

type Program = Pick<AlgorithmSummary, 'type' | 'title' | 'description' | 'categories' | 'functions' | 'keywords'>

const idle = new Set(['a', 'an', 'the', 'my', 'of', 'for', 'to', 'in', 'on', 'and', 'with', 'by', 'from', 'i', 'want', 'how', 'do', 'run', 'program'])
const wordsOf = (text: string) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)
const plain = (text: string) => wordsOf(text).join(' ')

/** Whether two words differ by so few added, missing, changed or swapped letters that one is likely a typo of the other. */
export function slip(a: string, b: string): boolean {
  const most = Math.min(a.length, b.length) >= 8 ? 2 : Math.min(a.length, b.length) >= 4 ? 1 : 0
  if (most === 0 || Math.abs(a.length - b.length) > most || a[0] !== b[0]) return false
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + Number(a[i - 1] !== b[j - 1]))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j]!, before[j - 2]! + 1)
    }
    ;[before, row] = [row, next]
  }
  return row[b.length]! <= most
}

/** How well a word matches one of these, from 0 to 1. */
function fit(word: string, words: readonly string[]): number {
  if (words.includes(word)) return 1
  const stem = word.length > 3 ? word.replace(/(ing|es|s|e)$/, '') : word
  if (words.some((w) => w.startsWith(word) || (stem.length > 2 && w.startsWith(stem)))) return 0.7
  return words.some((w) => slip(word, w)) ? 0.6 : 0
}

/** The searched words of a program with their weights: a name weighs more than a description. */
function fields(p: Program): [number, string[]][] {
  const keywords = p.keywords ?? []
  return [
    [60, wordsOf(p.type)], [55, keywords.flatMap(wordsOf)], [50, wordsOf(p.title)],
    [40, p.functions.flatMap(wordsOf)], [15, p.categories.flatMap(wordsOf)], [4, wordsOf(p.description)],
  ]
}

/** How well a program matches a search; 0 means no match. */
function score(p: Program, search: string): number {
  const asked = wordsOf(search)
  const words = asked.filter((w) => !idle.has(w))
  const known = fields(p)
  const each = (words.length > 0 ? words : asked).map((w) => Math.max(...known.map(([weight, all]) => weight * fit(w, all))))
  if (each.length === 0 || each.includes(0)) return 0
  const whole = plain(search)
  const phrase = plain(words.join(' '))
  const names = (p.keywords ?? []).map(plain)
  let sum = each.reduce((a, b) => a + b, 0) / each.length
  if (plain(p.type) === whole) sum += 1000
  if (names.includes(phrase) || names.includes(whole)) sum += 100
  else if (` ${plain(p.title)} `.includes(` ${phrase} `)) sum += 60
  else if (names.some((n) => ` ${n} `.includes(` ${phrase} `))) sum += 20
  return sum
}

/** The matching programs, best first; without a search, all by title. */
export function found<P extends Program>(programs: readonly P[], search: string): P[] {
  const byTitle = programs.toSorted((a, b) => a.title.localeCompare(b.title))
  if (wordsOf(search).length === 0) return byTitle
  const scores = new Map(byTitle.map((p) => [p, score(p, search)]))
  return byTitle.filter((p) => scores.get(p)! > 0).toSorted((a, b) => scores.get(b)! - scores.get(a)!)
}

const groups: [string, string[]][] = [
  ['Predict structures', ['structure-prediction']],
  ['Dock', ['docking', 'affinity']],
  ['Simulate', ['molecular-dynamics', 'ensemble-generation', 'phase-separation']],
  ['Sequences', ['sequence-analysis', 'alignment', 'sequence-search', 'sequence-clustering', 'phylogeny']],
  ['Structures', ['structure-analysis', 'structure-comparison', 'electrostatics']],
  ['Design', ['design']],
  ['Small molecules', ['cheminformatics', 'quantum-chemistry']],
  ['Prepare files', ['preparation']],
]

/** Groups programs by purpose. */
export function grouped<P extends Program>(programs: readonly P[]): { title: string; programs: P[] }[] {
  const of = (p: P) => groups.find(([, purposes]) => p.functions.some((f) => purposes.includes(f)))?.[0] ?? 'Other'
  return [...groups.map(([title]) => title), 'Other'].map((title) => ({ title, programs: programs.filter((p) => of(p) === title) })).filter((g) => g.programs.length > 0)
}
