// Links structures and matrices of the same residues: a cell of a matrix is a pair of residues
// of the structure.
import type { Focus, Residue, Residues } from './molecule'

export interface Cell { row: number; col: number }

const key = (r: Focus) => `${r.chain ?? ''} ${r.residue}`

export class Linked {
  private shown = $state.raw<Residues>({ residues: [], tokens: [] })
  private owner: string | undefined
  /** The cell under the pointer, shared by all matrices of these residues. */
  cell = $state.raw<Cell | undefined>()

  private readonly places = $derived.by(() => [this.shown.residues, this.shown.tokens].map((all) => {
    const places = new Map<string, number>()
    all.forEach((r, i) => places.has(key(r)) || places.set(key(r), i))
    return places
  }))
  private rows = $state.raw(0) // of the matrix pointed at last, or of the first one

  /** Sets the residues of a structure. The first view to call it stays the source. */
  show(view: string, all: Residues) {
    this.owner ??= view
    if (this.owner === view) this.shown = all
  }

  /** The residues of the rows of a matrix; undefined if they do not match the structure. */
  of(rows: number, cols: number): readonly Residue[] | undefined {
    if (rows !== cols || rows === 0) return undefined
    return [this.shown.residues, this.shown.tokens].find((all) => all.length === rows)
  }

  /** Registers a matrix of this size. */
  join(rows: number) {
    if (this.rows === 0) this.rows = rows
  }

  /** Handles the pointer on a cell of a matrix. */
  point(cell: Cell | undefined, rows: number) {
    this.rows = rows
    this.cell = cell
  }

  /** Handles the pointer on a residue of the structure. */
  over(residue: Focus | undefined) {
    const all = this.of(this.rows, this.rows)
    const at = all && residue && this.places[all === this.shown.residues ? 0 : 1]!.get(key(residue))
    this.cell = at === undefined ? undefined : { row: at, col: at }
  }

  /** The residues to mark in the structure. */
  get marked(): Focus[] {
    const all = this.of(this.rows, this.rows)
    if (!all || !this.cell) return []
    return [...new Set([all[this.cell.row], all[this.cell.col]])].filter((r) => r !== undefined)
  }
}
