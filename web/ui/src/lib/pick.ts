// The file that a table row describes, such as the pose of a ligand.

const baseName = (path: string) => path.slice(path.lastIndexOf('/') + 1)
const stem = (path: string) => baseName(path).replace(/\.[^.]*$/, '')

/** Finds the files of rows: a cell has a path, or a file name with or without its extension. */
export class Picks {
  private readonly files = new Map<string, string | undefined>() // undefined means ambiguous

  constructor(paths: readonly string[]) {
    for (const nameOf of [stem, baseName, (p: string) => p]) {
      const seen = new Set<string>()
      for (const path of paths) {
        const name = nameOf(path)
        this.files.set(name, seen.has(name) ? undefined : path)
        seen.add(name)
      }
    }
  }

  /** The file of a row, from its first text cell that names one; numbers are ignored. */
  of(row: readonly unknown[]): string | undefined {
    for (const cell of row) {
      if (typeof cell !== 'string' || cell === '') continue
      const path = this.files.get(cell.replace(/^\.\//, ''))
      if (path) return path
    }
    return undefined
  }
}
