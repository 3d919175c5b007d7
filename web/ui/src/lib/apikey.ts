/** Reads a pasted API key, ignoring surrounding white space. problem says why it can't be a key. */
export function apiKey(text: string): { key: string; problem: string } {
  const key = text.trim()
  const problem = /^\w*$/.test(key) ? '' : 'An API key contains only letters, digits and underscores. Copy it again, from molrun_ to the end.'
  return { key, problem }
}
