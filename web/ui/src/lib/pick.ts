// Which file a row of a table is about, such as the pose of a ligand.

const baseName = (path: string) => path.slice(path.lastIndexOf('/') + 1)
const stem = (path: string) => baseName(path).replace(/\.[^.]*$/, '')

/** Finds the files of rows: a cell holds a path, or the name of a file with or without its ending. */
export class Picks {
  private readonly files = new Map<string, string | undefined>() // undefined: of several

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

  /** The file of a row, the more telling cells first: a name that is a number alone says nothing. */
  of(row: readonly unknown[]): string | undefined {
    for (const cell of row) {
      if (typeof cell !== 'string' || cell === '') continue
      const path = this.files.get(cell.replace(/^\.\//, ''))
      if (path) return path
    }
    return undefined
  }
}
