// Makes a box that scrolls sideways focusable, labeled by the caption of its table, so that it
// can be scrolled by keyboard.

export function scrollable(node: HTMLElement) {
  const set = () => {
    if (node.scrollWidth > node.clientWidth + 1) {
      node.tabIndex = 0
      node.setAttribute('role', 'group')
      node.setAttribute('aria-label', node.querySelector('caption')?.textContent?.trim() || 'Table')
    } else {
      for (const name of ['tabindex', 'role', 'aria-label']) node.removeAttribute(name)
    }
  }
  const observer = new ResizeObserver(set)
  observer.observe(node)
  if (node.firstElementChild) observer.observe(node.firstElementChild)
  return { destroy: () => observer.disconnect() }
}
