// A box that scrolls sideways can be reached and scrolled by keyboard, under the name of
// the table in it.

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
