// The theme: the system’s, or the one chosen in this browser.

export type Theme = 'system' | 'light' | 'dark'

const key = 'molrun.theme'

function stored(): Theme {
  const value = localStorage.getItem(key)
  return value === 'light' || value === 'dark' ? value : 'system'
}

class Chosen {
  theme = $state.raw<Theme>('system')
}

export const chosen = new Chosen()

export function applyTheme(theme: Theme = stored()) {
  chosen.theme = theme
  if (theme === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(key)
  } else {
    document.documentElement.dataset.theme = theme
    localStorage.setItem(key, theme)
  }
}
