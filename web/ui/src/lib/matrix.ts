// Numeric matrices of views: rows of text, or JSON in AlphaFold's layouts.

/** rowNames and colNames are the names in the file. */
export interface MatrixData { values: Float32Array; rows: number; cols: number; rowNames?: string[]; colNames?: string[] }

const mostCells = 64_000_000 // a quarter of a gigabyte

/** Reads a matrix: rows of numbers separated by commas, tabs, semicolons or blanks, or JSON. Missing cells are NaN. */
export function parseMatrix(text: string): MatrixData {
  return /^\s*[[{]/.test(text) ? fromJSON(JSON.parse(text)) : fromRows(text)
}

type Rows = readonly (readonly unknown[])[]

const isRows = (v: unknown): v is Rows => Array.isArray(v) && v.length > 0 && v.every((r) => Array.isArray(r))

// Names of the matrix in the JSON of AlphaFold 2 and 3, ColabFold, Boltz and Chai.
const names = ['predicted_aligned_error', 'pae', 'contact_probs', 'distance', 'matrix', 'values', 'data']

function fromJSON(value: unknown): MatrixData {
  if (isRows(value)) return ofRows(value)
  const object = (Array.isArray(value) ? value[0] : value) as Record<string, unknown> | null
  if (typeof object === 'object' && object !== null) {
    for (const name of names) if (isRows(object[name])) return ofRows(object[name])
    const { residue1, residue2, distance } = object
    if (isNumbers(residue1) && isNumbers(residue2) && isNumbers(distance)) return ofTriples(residue1, residue2, distance)
    const other = Object.values(object).find(isRows)
    if (other) return ofRows(other)
  }
  throw new Error('The file has no matrix.')
}

const isNumbers = (v: unknown): v is number[] => Array.isArray(v) && (v.length === 0 || typeof v[0] === 'number')

function ofRows(rows: Rows): MatrixData {
  const cols = rows.reduce((most, r) => Math.max(most, r.length), 0)
  const m = empty(rows.length, cols)
  rows.forEach((row, r) => row.forEach((v, c) => (m.values[r * cols + c] = typeof v === 'number' ? v : NaN)))
  return m
}

/** The layout of the first version of the AlphaFold database: residue, residue, error. */
function ofTriples(a: number[], b: number[], values: number[]): MatrixData {
  const size = a.reduce((most, v) => Math.max(most, v), 0)
  const m = empty(size, size)
  values.forEach((v, i) => (m.values[(a[i]! - 1) * size + b[i]! - 1] = v))
  return m
}

function empty(rows: number, cols: number): MatrixData {
  if (rows * cols === 0) throw new Error('The matrix is empty.')
  if (rows * cols > mostCells) throw new Error(`The matrix has ${rows} × ${cols} cells, too many to show.`)
  return { values: new Float32Array(rows * cols).fill(NaN), rows, cols }
}

function fromRows(text: string): MatrixData {
  const lines = text.split('\n').map((l) => l.trim()).filter((l) => l !== '' && !l.startsWith('#'))
  const first = lines[0] ?? ''
  const apart = first.includes(',') ? /\s*,\s*/ : first.includes('\t') ? /\t/ : first.includes(';') ? /\s*;\s*/ : /\s+/
  const cells = first.split(apart)
  const header = cells.some((c) => c !== '' && Number.isNaN(Number(c)) && !/^nan$/i.test(c))
  if (header) lines.shift()
  const named = lines.length > 0 && isName(lines[0]!.split(apart)[0]!)
  const cols = Math.max(0, (lines[0] ?? '').split(apart).length - (named ? 1 : 0))
  const m = empty(lines.length, cols)
  if (header && cells.length >= cols) m.colNames = cells.slice(-cols)
  if (named) m.rowNames = []
  lines.forEach((line, r) => {
    const row = line.split(apart)
    m.rowNames?.push(row[0]!)
    for (let c = 0; c < cols; c++) {
      const cell = row[c + (named ? 1 : 0)]
      m.values[r * cols + c] = cell === undefined || cell === '' ? NaN : Number(cell)
    }
  })
  return m
}

const isName = (cell: string) => cell === '' || (Number.isNaN(Number(cell)) && !/^nan$/i.test(cell))

/** Removes pairs of residues that are closer along the chain than separation. */
export function apart(m: MatrixData, separation: number): MatrixData {
  if (separation < 1 || m.rows !== m.cols) return m
  const values = m.values.map((v, k) => (Math.abs(Math.floor(k / m.cols) - (k % m.cols)) < separation ? NaN : v))
  return { ...m, values }
}

/** The minimum and maximum value. */
export function extent(values: Float32Array): [number, number] | undefined {
  let low = Infinity
  let high = -Infinity
  for (let i = 0; i < values.length; i++) {
    const v = values[i]!
    if (v < low) low = v
    if (v > high) high = v
  }
  return low <= high ? [low, high] : undefined
}

// Viridis increases steadily in brightness, so it also works in grayscale.
const viridis = ['#440154', '#472d7b', '#3b528b', '#2c728e', '#21918c', '#28ae80', '#5ec962', '#addc30', '#fde725']
const steps = 256
const missing = 0xffb0b0b0 // grey, ABGR

/** 256 colors from dark (low) to bright (high), in the format of a canvas. */
export function colours(reversed = false): Uint32Array {
  const stops = (reversed ? [...viridis].reverse() : viridis).map((h) => [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16)))
  return Uint32Array.from({ length: steps }, (_, i) => {
    const at = (i / (steps - 1)) * (stops.length - 1)
    const a = stops[Math.floor(at)]!
    const b = stops[Math.ceil(at)]!
    const [red, green, blue] = a.map((v, k) => Math.round(v + (b[k]! - v) * (at % 1)))
    return (0xff000000 | (blue! << 16) | (green! << 8) | red!) >>> 0
  })
}

export const css = (abgr: number) => `rgb(${abgr & 255} ${(abgr >> 8) & 255} ${(abgr >> 16) & 255})`

/** Fills pixels (ABGR) with the matrix. If there are more cells than pixels, each pixel shows the mean of its cells. */
export function paint(pixels: Uint32Array, width: number, height: number, m: MatrixData, [low, high]: [number, number], palette: Uint32Array) {
  const factor = (steps - 1) / (high - low || 1)
  for (let y = 0; y < height; y++) {
    const r0 = Math.floor((y * m.rows) / height)
    const r1 = Math.max(r0 + 1, Math.floor(((y + 1) * m.rows) / height))
    for (let x = 0; x < width; x++) {
      const c0 = Math.floor((x * m.cols) / width)
      const c1 = Math.max(c0 + 1, Math.floor(((x + 1) * m.cols) / width))
      const v = mean(m, r0, r1, c0, c1)
      pixels[y * width + x] = Number.isNaN(v) ? missing : palette[Math.max(0, Math.min(steps - 1, Math.round((v - low) * factor)))]!
    }
  }
}

function mean(m: MatrixData, r0: number, r1: number, c0: number, c1: number): number {
  let sum = 0
  let n = 0
  for (let r = r0; r < r1; r++) {
    for (let c = c0; c < c1; c++) {
      const v = m.values[r * m.cols + c]!
      if (v === v) {
        sum += v
        n++
      }
    }
  }
  return n > 0 ? sum / n : NaN
}
