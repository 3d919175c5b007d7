// Keyboard shortcuts. They are inactive while the user types or a dialog is open.

type Action = (e: KeyboardEvent) => void

const actions = new Map<string, Action[]>()
let first = '' // first key of a sequence such as `g j`
let firstAt = 0

const sequenceTime = 1_500 // milliseconds between two keys of a sequence

/** Binds keys, such as `n` or `g j`, until the returned function is called. The latest binding wins. */
export function bind(bindings: Record<string, Action>): () => void {
  for (const [key, action] of Object.entries(bindings)) actions.set(key, [...(actions.get(key) ?? []), action])
  return () => {
    for (const [key, action] of Object.entries(bindings)) actions.set(key, (actions.get(key) ?? []).filter((a) => a !== action))
  }
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.matches('textarea, select')) return true
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button'].includes(target.type)
}

addEventListener('keydown', (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || document.querySelector('dialog[open]')) return
  const sequence = e.timeStamp - firstAt < sequenceTime ? `${first} ${e.key}` : ''
  const action = (actions.get(sequence) ?? actions.get(e.key))?.at(-1)
  first = e.key
  firstAt = e.timeStamp
  if (!action) return
  e.preventDefault()
  action(e)
})
