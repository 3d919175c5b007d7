// What charts draw.

export interface Line { name: string; unit?: string; values: readonly (number | null)[] }

/** One run: lines over an axis. */
export interface Run { name: string; x: readonly number[]; y: readonly Line[]; xName: string; xUnit?: string }

/** A row of a scatter plot, such as a job, with its metrics by name. */
export interface Point { id: string; name: string; values: Readonly<Record<string, number | null | undefined>> }

export interface Metric { name: string; title?: string; unit?: string; digits?: number }
