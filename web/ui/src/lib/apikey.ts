/** Reads an API key as people paste it: white space around it does not count. problem says why it can't be one. */
export function apiKey(text: string): { key: string; problem: string } {
  const key = text.trim()
  const problem = /^\w*$/.test(key) ? '' : 'An API key has only letters, digits and underscores. Copy it again, from molrun_ to its end.'
  return { key, problem }
}
