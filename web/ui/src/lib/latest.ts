// Runs a slow function for the latest of many values, skipping those in between.

export class Latest<T> {
  private running: Promise<void> | undefined
  private wanted: { value: T } | undefined

  constructor(private readonly fn: (value: T) => Promise<void>) {}

  /** Resolves when fn has run for this value or a later one. */
  set(value: T): Promise<void> {
    this.wanted = { value }
    return (this.running ??= this.run())
  }

  private async run() {
    try {
      while (this.wanted) {
        const { value } = this.wanted
        this.wanted = undefined
        await this.fn(value)
      }
    } finally {
      this.running = undefined
    }
  }
}
